// SPDX-License-Identifier: Apache-2.0
#include "daemon/clock_guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace popgate {
namespace {

using std::chrono::seconds;
using PeerClocks = std::vector<ClockGuard::PeerClock>;

ClockGuard::PeerClock peer(int skew_ms, int round_trip_ms = 0) {
  return {.skew = milliseconds(skew_ms), .round_trip = milliseconds(round_trip_ms)};
}

/// A guard and the clocks of its node; the tolerance is 20 ms.
struct Guarded {
  explicit Guarded(std::size_t members = 3) : guard({.tolerance = milliseconds(20), .members = members}) {}
  ClockGuard::Look look(const PeerClocks& peers, microseconds after = milliseconds(100)) {
    host += after;
    return guard.look(peers, now());
  }
  ClockStanding standing(const PeerClocks& peers, microseconds after = milliseconds(100)) {
    return look(peers, after).is;
  }
  [[nodiscard]] ClockGuard::Instants now() const {
    return {host, PopInstant(wall_less_host + host.time_since_epoch())};
  }

  ClockGuard guard;
  HostInstant host{seconds(1000)};
  microseconds wall_less_host{seconds(100)};
};

bool is_off(const PeerClocks& peers) { return Guarded().standing(peers) == ClockStanding::kOff; }

TEST(ClockGuard, node_alone_is_right_at_once) {
  Guarded alone(1);
  EXPECT_EQ(alone.guard.standing(), ClockStanding::kRight);
  EXPECT_EQ(alone.standing({}), ClockStanding::kRight);
  alone.wall_less_host += seconds(3600);
  EXPECT_FALSE(alone.guard.is_outdated(alone.now()));
  EXPECT_EQ(alone.standing({}), ClockStanding::kRight);
}

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
  Guarded far(2);
  EXPECT_EQ(far.standing({peer(60, 40)}), ClockStanding::kOff);
  EXPECT_EQ(far.standing({peer(60, 80)}), ClockStanding::kOff) << "not within three quarters of the tolerance";
  EXPECT_EQ(far.standing({peer(55, 80)}), ClockStanding::kRight);
  EXPECT_EQ(far.standing({peer(60, 80)}), ClockStanding::kRight);
  EXPECT_EQ(far.standing({peer(61, 80)}), ClockStanding::kOff);
}

TEST(ClockGuard, clock_is_right_again_only_well_within_the_tolerance) {
  Guarded node;
  const auto look = [&](int skew_ms) { return node.standing({peer(skew_ms), peer(skew_ms)}) == ClockStanding::kOff; };
  EXPECT_TRUE(look(-30));
  EXPECT_EQ(node.guard.ahead(), milliseconds(30));
  EXPECT_TRUE(look(-16));
  EXPECT_FALSE(look(-15));
  EXPECT_FALSE(look(-20));
}

TEST(ClockGuard, losing_the_peers_makes_no_clock_right) {
  Guarded node;
  EXPECT_EQ(node.standing({peer(-50), peer(-50)}), ClockStanding::kOff);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(node.standing({}), ClockStanding::kOff);
}

TEST(ClockGuard, without_peers_it_follows_the_steps_of_its_own_clock) {
  Guarded node;
  EXPECT_EQ(node.standing({peer(0), peer(0)}), ClockStanding::kRight);
  node.wall_less_host += seconds(3600);
  EXPECT_EQ(node.standing({}), ClockStanding::kOff);
  EXPECT_EQ(node.guard.ahead(), seconds(3600));
  node.wall_less_host -= seconds(3600);
  EXPECT_EQ(node.standing({}), ClockStanding::kRight) << "set right again";
  node.wall_less_host += milliseconds(20);
  EXPECT_EQ(node.standing({}), ClockStanding::kRight) << "within the tolerance";
}

// ---- What nobody has judged yet ----

TEST(ClockGuard, clock_is_unjudged_at_first_until_more_than_half_of_the_pop_is_compared) {
  Guarded node(5);
  EXPECT_EQ(node.guard.standing(), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({peer(0)}), ClockStanding::kUnjudged) << "both may have the same wrong clock";
  EXPECT_EQ(node.standing({peer(0), peer(1)}), ClockStanding::kRight);
  EXPECT_EQ(node.standing({peer(0)}), ClockStanding::kRight) << "once judged, it stays so with fewer";
}

TEST(ClockGuard, first_peer_with_a_wrong_clock_does_not_decide_for_five) {
  Guarded node(5);
  EXPECT_EQ(node.standing({peer(3'600'000)}), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({peer(3'600'000), peer(1)}), ClockStanding::kRight);
}

TEST(ClockGuard, wrong_clock_at_the_start_is_never_right_in_between) {
  Guarded node(3);
  EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  const ClockGuard::Look look = node.look({peer(50)});
  EXPECT_EQ(look.is, ClockStanding::kOff);
  EXPECT_FALSE(look.stamps_in_doubt) << "they are given up when the clock is right again, as ever";
}

TEST(ClockGuard, who_hears_nobody_is_right_after_a_while) {
  Guarded node(3);
  EXPECT_EQ(node.standing({}, seconds(0)), ClockStanding::kUnjudged);
  for (milliseconds waited(100); waited < ClockGuard::kJudgedWithin; waited += milliseconds(100)) {
    EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  }
  const ClockGuard::Look look = node.look({});
  EXPECT_EQ(look.is, ClockStanding::kRight);
  EXPECT_FALSE(look.stamps_in_doubt) << "nothing is lost";
  EXPECT_EQ(node.standing({peer(50), peer(50)}), ClockStanding::kOff) << "and judged as soon as peers are there";
}

TEST(ClockGuard, too_few_are_asked_when_no_more_come) {
  Guarded node(5);
  EXPECT_EQ(node.standing({peer(50)}, seconds(0)), ClockStanding::kUnjudged);
  for (int i = 0; i < 19; ++i) EXPECT_EQ(node.standing({peer(50)}), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({peer(50)}), ClockStanding::kOff);
}

TEST(ClockGuard, peer_further_away_than_the_tolerance_shows_no_clock_to_be_right) {
  Guarded node(2);
  EXPECT_EQ(node.standing({peer(10, 42)}), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({peer(10, 40)}), ClockStanding::kRight);
}

TEST(ClockGuard, step_while_unjudged_puts_stamps_in_doubt_and_waits_anew) {
  Guarded node(3);
  EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(node.look({}).stamps_in_doubt);
  node.wall_less_host += milliseconds(20);
  EXPECT_FALSE(node.guard.is_outdated(node.now())) << "within the tolerance";
  EXPECT_FALSE(node.look({}).stamps_in_doubt);
  node.wall_less_host += milliseconds(21);
  EXPECT_TRUE(node.guard.is_outdated(node.now()));
  const ClockGuard::Look look = node.look({});
  EXPECT_TRUE(look.stamps_in_doubt);
  EXPECT_EQ(look.is, ClockStanding::kUnjudged);
  EXPECT_FALSE(node.guard.is_outdated(node.now()));
  for (int i = 0; i < 19; ++i) EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged) << "counted from the step";
  EXPECT_EQ(node.standing({}), ClockStanding::kRight);
}

TEST(ClockGuard, step_at_the_very_look_that_judges_puts_stamps_in_doubt_too) {
  Guarded node(3);
  EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  node.wall_less_host += seconds(1);
  const ClockGuard::Look look = node.look({peer(0), peer(0)});
  EXPECT_EQ(look.is, ClockStanding::kRight);
  EXPECT_TRUE(look.stamps_in_doubt) << "what waits was stamped a second behind";
}

TEST(ClockGuard, step_that_far_peers_cannot_judge_puts_stamps_in_doubt_too) {
  Guarded node(2);
  EXPECT_EQ(node.standing({peer(0)}), ClockStanding::kRight);
  node.wall_less_host += milliseconds(30);
  const ClockGuard::Look look = node.look({peer(-30, 100)});
  EXPECT_EQ(look.is, ClockStanding::kRight) << "half a round trip explains it";
  EXPECT_TRUE(look.stamps_in_doubt);
}

TEST(ClockGuard, node_that_never_had_a_peer_may_set_its_clock_and_waits_for_a_judgement_again) {
  Guarded node(3);
  for (int i = 0; i <= 20; ++i) (void)node.look({});
  EXPECT_EQ(node.guard.standing(), ClockStanding::kRight);
  node.wall_less_host += seconds(3600);
  const ClockGuard::Look look = node.look({});
  EXPECT_EQ(look.is, ClockStanding::kUnjudged);
  EXPECT_TRUE(look.stamps_in_doubt);
  for (int i = 0; i < 20; ++i) (void)node.look({});
  EXPECT_EQ(node.guard.standing(), ClockStanding::kRight) << "not held to be off for ever";
}

TEST(ClockGuard, after_a_pause_clocks_are_compared_anew) {
  Guarded node(3);
  EXPECT_EQ(node.standing({peer(0), peer(0)}), ClockStanding::kRight);
  EXPECT_EQ(node.standing({}, ClockGuard::kPauseMax), ClockStanding::kRight) << "a busy loop";
  node.host += ClockGuard::kPauseMax + microseconds(1);
  EXPECT_TRUE(node.guard.is_outdated(node.now()));
  const ClockGuard::Look look = node.look({}, seconds(0));
  EXPECT_EQ(look.is, ClockStanding::kUnjudged);
  EXPECT_FALSE(look.stamps_in_doubt) << "they are as good as before";
  EXPECT_EQ(node.standing({peer(0)}), ClockStanding::kRight);
}

TEST(ClockGuard, pause_makes_no_clock_right) {
  Guarded node(3);
  EXPECT_EQ(node.standing({peer(50), peer(50)}), ClockStanding::kOff);
  const ClockGuard::Look look = node.look({}, seconds(60));
  EXPECT_EQ(look.is, ClockStanding::kUnjudged);
  EXPECT_TRUE(look.stamps_in_doubt);
  for (int i = 0; i < 19; ++i) EXPECT_EQ(node.standing({}), ClockStanding::kUnjudged);
  EXPECT_EQ(node.standing({}), ClockStanding::kOff) << "what was known last";
}

TEST(ClockGuard, stamps_of_a_clock_that_was_off_are_in_doubt_when_it_is_right_again) {
  Guarded node(3);
  EXPECT_FALSE(node.look({peer(50), peer(50)}).stamps_in_doubt);
  EXPECT_FALSE(node.look({peer(50), peer(50)}).stamps_in_doubt);
  EXPECT_TRUE(node.look({peer(0), peer(0)}).stamps_in_doubt);
  EXPECT_FALSE(node.look({peer(0), peer(0)}).stamps_in_doubt);
}

}  // namespace
}  // namespace popgate
