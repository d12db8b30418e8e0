// SPDX-License-Identifier: Apache-2.0
#include "daemon/clock_guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace popgate {
namespace {

using std::chrono::seconds;

ClockGuard::PeerClock peer(int skew_ms, int round_trip_ms = 0) {
  return {.skew = milliseconds(skew_ms), .round_trip = milliseconds(round_trip_ms)};
}

bool is_off(const std::vector<ClockGuard::PeerClock>& peers) {
  ClockGuard guard(milliseconds(20));
  return guard.look(peers, microseconds(0));
}

TEST(ClockGuard, node_alone_is_never_off) { EXPECT_FALSE(is_off({})); }

TEST(ClockGuard, difference_within_the_tolerance_is_allowed_and_beyond_it_is_not) {
  EXPECT_FALSE(is_off({peer(20), peer(20)}));
  EXPECT_TRUE(is_off({peer(21), peer(21)}));
  EXPECT_TRUE(is_off({peer(-21), peer(-21)}));
}

TEST(ClockGuard, majority_is_right_and_one_wrong_peer_is_not_our_fault) {
  EXPECT_FALSE(is_off({peer(3'600'000), peer(1)}));
  EXPECT_TRUE(is_off({peer(3'600'000), peer(3'600'001)}));
}

TEST(ClockGuard, of_two_nodes_neither_is_trusted) {
  EXPECT_TRUE(is_off({peer(3'600'000)}));
  EXPECT_TRUE(is_off({peer(-3'600'000)}));
}

TEST(ClockGuard, what_half_a_round_trip_explains_is_not_held_against_a_clock) {
  EXPECT_FALSE(is_off({peer(60, 80)}));
  EXPECT_TRUE(is_off({peer(61, 80)}));
}

TEST(ClockGuard, clock_is_right_again_only_well_within_the_tolerance) {
  ClockGuard guard(milliseconds(20));
  const auto look = [&](int skew_ms) {
    const std::vector<ClockGuard::PeerClock> peers{peer(skew_ms), peer(skew_ms)};
    return guard.look(peers, microseconds(0));
  };
  EXPECT_TRUE(look(-30));
  EXPECT_EQ(guard.ahead(), milliseconds(30));
  EXPECT_TRUE(look(-16));
  EXPECT_FALSE(look(-15));
  EXPECT_FALSE(look(-20));
}

TEST(ClockGuard, losing_the_peers_makes_no_clock_right) {
  ClockGuard guard(milliseconds(20));
  EXPECT_TRUE(guard.look(std::vector{peer(-50), peer(-50)}, seconds(100)));
  EXPECT_TRUE(guard.look({}, seconds(100)));
  EXPECT_TRUE(guard.look({}, seconds(100)));
}

TEST(ClockGuard, without_peers_it_follows_the_steps_of_its_own_clock) {
  ClockGuard guard(milliseconds(20));
  EXPECT_FALSE(guard.look(std::vector{peer(0), peer(0)}, seconds(100)));
  EXPECT_TRUE(guard.look({}, seconds(3700)));
  EXPECT_EQ(guard.ahead(), seconds(3600));
  EXPECT_FALSE(guard.look({}, seconds(100))) << "set right again";
  EXPECT_FALSE(guard.look({}, seconds(100) + milliseconds(20))) << "within the tolerance";
}

TEST(ClockGuard, a_node_that_never_had_a_peer_may_set_its_clock) {
  ClockGuard guard(milliseconds(20));
  EXPECT_FALSE(guard.look({}, seconds(100)));
}

}  // namespace
}  // namespace popgate
