// SPDX-License-Identifier: Apache-2.0
//
// What decide() decides is tested through the ABI, in client_test.cc.
#include "libclient/verdict.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

TEST(Verdict, whole_seconds_are_rounded_up_and_never_nothing) {
  EXPECT_EQ(retry_after_s(microseconds(0)), 1U);
  EXPECT_EQ(retry_after_s(microseconds(1)), 1U);
  EXPECT_EQ(retry_after_s(std::chrono::seconds(1)), 1U);
  EXPECT_EQ(retry_after_s(std::chrono::seconds(1) + microseconds(1)), 2U);
  EXPECT_EQ(retry_after_s(std::chrono::hours(24 * 14)), 1'209'600U);
  EXPECT_EQ(retry_after_s(microseconds::max()), UINT32_MAX);
}

TEST(Verdict, as_many_matches_as_there_may_be_all_count) {
  Matches matches;
  for (const auto& [count, counted] :
       {std::pair(kMatchesMax, UINT32_MAX), std::pair(std::size_t{3}, 7U), std::pair(std::size_t{0}, 0U)}) {
    matches.count = count;
    EXPECT_EQ(decide(RulesView(), TableReader(), matches, 0).counted, counted);
  }
}

}  // namespace
}  // namespace popgate
