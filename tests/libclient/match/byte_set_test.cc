// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/byte_set.h"

#include <gtest/gtest.h>

#include <string>

namespace popgate {
namespace {

TEST(ByteSet, has_exactly_the_bytes_it_was_made_of) {
  constexpr ByteSet set("?\xff#");
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(set.has(static_cast<char>(byte)), byte == '?' || byte == '#' || byte == 0xff) << byte;
  }
}

TEST(ByteSet, finds_the_first_from_a_place_on_or_the_end) {
  constexpr ByteSet set("/%");
  EXPECT_EQ(set.find_in("a/b%"), 1U);
  EXPECT_EQ(set.find_in("a/b%", 2), 3U);
  EXPECT_EQ(set.find_in("a/b%", 4), 4U);
  EXPECT_EQ(set.find_in("abc"), 3U);
  EXPECT_EQ(set.find_in(""), 0U);
}

}  // namespace
}  // namespace popgate
