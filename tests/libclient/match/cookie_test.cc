// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/cookie.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace popgate {
namespace {

std::optional<std::string> cookie(std::string_view header, std::string_view name) {
  std::string_view value;
  if (!find_cookie(header, name, value)) return std::nullopt;
  return std::string(value);
}

TEST(Cookie, is_found_by_its_whole_name) {
  EXPECT_EQ(cookie("a=1; session=abc; b=2", "session"), "abc");
  EXPECT_EQ(cookie("a=1; session=abc; b=2", "b"), "2");
  EXPECT_EQ(cookie("xsession=1; session2=2", "session"), std::nullopt);
  EXPECT_EQ(cookie("Session=1", "session"), std::nullopt);
}

TEST(Cookie, the_first_of_a_name_wins) { EXPECT_EQ(cookie("s=1; s=2", "s"), "1"); }

TEST(Cookie, empty_is_not_missing) {
  EXPECT_EQ(cookie("s=; t=1", "s"), "");
  EXPECT_EQ(cookie("", "s"), std::nullopt);
}

TEST(Cookie, a_value_may_hold_equals_signs_and_quotes) {
  EXPECT_EQ(cookie("s=a=b==; t=1", "s"), "a=b==");
  EXPECT_EQ(cookie("s=\"q\"", "s"), "\"q\"");
}

TEST(Cookie, a_name_inside_a_value_is_not_found) { EXPECT_EQ(cookie("a=s=1", "s"), std::nullopt); }

TEST(Cookie, missing_blanks_and_stray_separators_do_not_matter) {
  EXPECT_EQ(cookie(";;a=1;s=2;", "s"), "2");
  EXPECT_EQ(cookie(" \ts = 2 ", "s"), "2");
}

TEST(Cookie, a_pair_without_equals_sign_has_no_name) {
  EXPECT_EQ(cookie("s; t=1", "s"), std::nullopt);
  EXPECT_EQ(cookie("s; s=1", "s"), "1");
}

}  // namespace
}  // namespace popgate
