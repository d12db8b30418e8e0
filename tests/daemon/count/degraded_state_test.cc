// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/degraded_state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

namespace popgate {
namespace {

using std::chrono::seconds;

HostInstant at_ms(std::int64_t ms) { return HostInstant(milliseconds(ms)); }

/// Looks every 50 ms, as a node's tick does.
class DegradedStateTest : public ::testing::Test {
 protected:
  void keep(bool answering, milliseconds lasting) {
    for (const std::int64_t end = now_ms_ + lasting.count(); now_ms_ < end; now_ms_ += 50) look(answering);
    look(answering);
  }
  void look(bool answering) {
    if (state_.look(answering, at_ms(now_ms_))) ++changes_;
  }

  DegradedState state_;
  std::int64_t now_ms_ = 0;
  int changes_ = 0;
};

TEST_F(DegradedStateTest, a_blip_is_no_outage) {
  keep(true, seconds(10));
  keep(false, milliseconds(900));
  keep(true, seconds(10));
  EXPECT_EQ(changes_, 0);
}

TEST_F(DegradedStateTest, failing_for_a_second_enters_and_answering_for_three_leaves) {
  keep(true, seconds(10));
  keep(false, milliseconds(950));
  EXPECT_FALSE(state_.is_degraded());
  keep(false, milliseconds(100));
  EXPECT_TRUE(state_.is_degraded());
  keep(true, milliseconds(2900));
  EXPECT_TRUE(state_.is_degraded());
  keep(true, milliseconds(150));
  EXPECT_FALSE(state_.is_degraded());
  EXPECT_EQ(changes_, 2);
}

TEST_F(DegradedStateTest, a_shard_that_answers_now_and_then_is_degraded_once_and_stays_so) {
  keep(true, seconds(10));
  for (int i = 0; i < 20; ++i) {
    keep(false, milliseconds(400));
    keep(true, seconds(1));
  }
  EXPECT_TRUE(state_.is_degraded());
  EXPECT_EQ(changes_, 1);
}

TEST_F(DegradedStateTest, blips_with_steady_answering_between_do_not_add_up) {
  for (int i = 0; i < 20; ++i) {
    keep(true, seconds(4));
    keep(false, milliseconds(600));
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(DegradedStateTest, a_shard_that_never_answered_is_degraded_after_a_second) {
  keep(false, milliseconds(1100));
  EXPECT_TRUE(state_.is_degraded());
}

// However a shard flaps, rules change what they do about it at most once in four seconds each way.
RC_GTEST_PROP(DegradedStateProperty, the_state_changes_at_most_twice_in_four_seconds, ()) {
  const auto answers = *rc::gen::container<std::vector<bool>>(400, rc::gen::arbitrary<bool>());
  DegradedState state;
  std::vector<std::int64_t> changes;
  std::int64_t now_ms = 0;
  for (const bool answering : answers) {
    now_ms += *rc::gen::inRange(1, 400);
    if (state.look(answering, at_ms(now_ms))) changes.push_back(now_ms);
  }
  for (std::size_t i = 2; i < changes.size(); ++i) RC_ASSERT(changes[i] - changes[i - 2] >= 4000);
}

}  // namespace
}  // namespace popgate
