// SPDX-License-Identifier: Apache-2.0
#include "daemon/printable_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace popgate {
namespace {

bool is_printable_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7e; });
}

TEST(PrintableText, names_have_question_marks_for_what_is_not_ascii) {
  EXPECT_EQ(printable_ascii("a\x1b[31m\n\x7f\xc3\xa9~ "), "a?[31m????~ ");
  EXPECT_EQ(printable_ascii("abcd", 4), "abcd");
  EXPECT_EQ(printable_ascii("abcde", 4), "abcd...");
  EXPECT_EQ(printable_ascii({"a\0b", 3}), "a?b");
}

TEST(PrintableText, bytes_are_escaped_one_by_one) {
  EXPECT_EQ(escaped_ascii("a\t\xff~\x7f"), "a\\x09\\xff~\\x7f");
  EXPECT_EQ(escaped_ascii("\xff\xff\xff", 2), "\\xff\\xff...");
}

TEST(PrintableText, control_characters_are_shown_and_not_obeyed_and_other_letters_stay) {
  EXPECT_EQ(escaped_controls("a\x1b[31m\n\x7f\xc2\x9b \xc3\xa9 \xc2\xa7"),
            "a\\x1b[31m\\x0a\\x7f\\x9b \xc3\xa9 \xc2\xa7");
  EXPECT_EQ(escaped_controls("\xc2"), "\xc2") << "the end of the text in a character";
}

RC_GTEST_PROP(PrintableText, nothing_plays_with_a_terminal, (const std::string& text)) {
  RC_ASSERT(is_printable_ascii(printable_ascii(text)));
  RC_ASSERT(is_printable_ascii(escaped_ascii(text)));
  for (const char c : escaped_controls(text)) {
    RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
    RC_ASSERT(c != 0x7f);
  }
}

}  // namespace
}  // namespace popgate
