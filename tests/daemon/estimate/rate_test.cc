// SPDX-License-Identifier: Apache-2.0
#include "daemon/estimate/rate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace popgate {
namespace {

using std::chrono::seconds;

const Key kNoPhase{0, 0};  // slots start at multiples of the slot length

PopInstant at(double s) { return PopInstant(microseconds(static_cast<std::int64_t>(s * 1e6))); }

SlotTotals totals_of(const std::vector<SlotCount>& counts, bool lost = false) {
  return {.key = kNoPhase, .rule = 0, .slots = counts, .fresh = true, .counters_lost = lost};
}

// k = 1 without tolerance is the two-counter estimate: previous x (1 - elapsed) + current.
TEST(Rate, one_slot_a_window_is_the_two_counter_estimate) {
  const KeySlots slots(WindowShape::make(seconds(60), 1, microseconds(0)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 0, .known = 80}, {.slot = 1, .known = 30}};
  const Rate rate = estimate_rate(totals_of(counts), slots, at(75), std::nullopt);
  EXPECT_DOUBLE_EQ(rate.estimate, 80 * (1 - 15.0 / 60) + 30);
  EXPECT_EQ(rate.lo, 30U);
  EXPECT_EQ(rate.hi, 110U);
}

TEST(Rate, slots_wholly_inside_are_certain_and_the_cut_one_counts_by_its_fraction) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  std::vector<SlotCount> counts;
  for (SlotIndex slot = 2; slot <= 9; ++slot) counts.push_back({.slot = slot, .known = 10});
  // At 97 s the window is (37, 97]: slot 3 is cut with 0.3 inside, slots 4 .. 9 lie inside, slot 2 is over.
  const Rate rate = estimate_rate(totals_of(counts), slots, at(97), std::nullopt);
  EXPECT_EQ(rate.lo, 60U);
  EXPECT_DOUBLE_EQ(rate.estimate, 63.0);
  EXPECT_EQ(rate.hi, 70U);
}

// A hit exactly one window old is outside: the window is half-open.
TEST(Rate, slot_that_starts_exactly_one_window_ago_is_not_certain) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, microseconds(0)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 4, .known = 7}};
  EXPECT_EQ(estimate_rate(totals_of(counts), slots, at(100), std::nullopt).lo, 0U);
  EXPECT_EQ(estimate_rate(totals_of(counts), slots, at(99.999999), std::nullopt).lo, 7U);
}

TEST(Rate, tolerance_narrows_lo_and_widens_hi) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, seconds(2)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 3, .known = 5}, {.slot = 4, .known = 7}};
  // At 99 s the window is (39, 99]: slot 4 starts at 40 s, within the tolerance of the edge.
  EXPECT_EQ(estimate_rate(totals_of(counts), slots, at(99), std::nullopt).lo, 0U);
  // At 101 s slot 3 ended 1 s before the edge (41 s): still possible.
  EXPECT_EQ(estimate_rate(totals_of(counts), slots, at(101), std::nullopt).hi, 12U);
}

TEST(Rate, unsent_hits_count_as_certain_and_hidden_hits_only_in_hi) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 10, .unsent = 3, .hidden = 4}};
  const Rate rate = estimate_rate(totals_of(counts), slots, at(97), std::nullopt);
  EXPECT_EQ(rate.lo, 13U);
  EXPECT_DOUBLE_EQ(rate.estimate, 13.0);
  EXPECT_EQ(rate.hi, 17U);
}

TEST(Rate, lost_counters_make_hi_unknown_and_leave_lo) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 10}};
  const Rate rate = estimate_rate(totals_of(counts, true), slots, at(97), std::nullopt);
  EXPECT_EQ(rate.lo, 10U);
  EXPECT_FALSE(rate.hi.has_value());
}

TEST(Rate, lifted_slots_hold_nothing) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 8, .known = 100}, {.slot = 9, .known = 2}};
  const Rate rate = estimate_rate(totals_of(counts), slots, at(97), SlotIndex{8});
  EXPECT_EQ(rate.lo, 2U);
  EXPECT_DOUBLE_EQ(rate.estimate, 2.0);
  EXPECT_EQ(rate.hi, 2U);
}

TEST(Rate, slots_ahead_of_a_clock_that_stepped_back_hold_nothing) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 2}, {.slot = 369, .known = 100}};
  const Rate rate = estimate_rate(totals_of(counts), slots, at(97), std::nullopt);
  EXPECT_EQ(rate.lo, 2U);
  EXPECT_EQ(rate.hi, 2U);
  EXPECT_DOUBLE_EQ(rate.estimate, 2.0);
}

TEST(Rate, falls_to_a_level_at_the_time_that_the_straight_line_gives) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  // 20 hits in slot 4 (40 .. 50 s), 10 in slot 9 (90 .. 100 s); at 97 s the estimate is 30. It loses 2 a second from
  // 100 s (the edge enters slot 4) on, so it is 19 at 105.5 s; then 1 a second from 150 s, so it is 4 at 156 s.
  const std::vector<SlotCount> counts{{.slot = 4, .known = 20}, {.slot = 9, .known = 10}};
  const auto fall = [&](double level) {
    return time_until_figure_is(RateFigure::kEstimate, level, totals_of(counts), slots, at(97), std::nullopt).count();
  };
  EXPECT_NEAR(static_cast<double>(fall(19)), 8.5e6, 1);
  EXPECT_NEAR(static_cast<double>(fall(4)), 59e6, 1);
  EXPECT_EQ(fall(30), 0);
  EXPECT_NEAR(static_cast<double>(fall(0)), 63e6, 1);
}

// The bounds fall in steps: lo when a slot's start, hi when its end leaves the window, D earlier and later.
TEST(Rate, bounds_fall_when_a_whole_slot_leaves) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 4, .known = 20}, {.slot = 9, .known = 10, .hidden = 3}};
  const auto fall = [&](RateFigure figure, double level) {
    return time_until_figure_is(figure, level, totals_of(counts), slots, at(97), std::nullopt).count();
  };
  EXPECT_EQ(fall(RateFigure::kLo, 30), 0);
  EXPECT_EQ(fall(RateFigure::kLo, 29), 3'000'000 - 20'000);  // slot 4 starts at 40 s
  EXPECT_EQ(fall(RateFigure::kLo, 9), 53'000'000 - 20'000);  // slot 9 at 90 s
  EXPECT_EQ(fall(RateFigure::kHi, 33), 0);
  EXPECT_EQ(fall(RateFigure::kHi, 32), 13'000'000 + 20'000);  // slot 4 ends at 50 s
  EXPECT_EQ(fall(RateFigure::kHi, 12), 63'000'000 + 20'000);
  EXPECT_EQ(time_until_figure_is(RateFigure::kHi, 32, totals_of(counts, true), slots, at(97), std::nullopt).count(),
            13'000'000 + 20'000);  // unknown now, and perhaps known by then
}

TEST(Rate, peers_add_what_is_uncertain_with_them_and_make_hi_unknown_while_they_hold_hits) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 10}};
  SlotTotals totals = totals_of(counts);
  totals.peers.uncertain = 3;
  EXPECT_EQ(estimate_rate(totals, slots, at(97), std::nullopt).hi, 13U);
  EXPECT_EQ(estimate_rate(totals, slots, at(97), std::nullopt).lo, 10U);
  totals.peers.unknown = true;
  EXPECT_FALSE(estimate_rate(totals, slots, at(97), std::nullopt).hi.has_value());
}

TEST(Rate, hi_is_unknown_while_the_own_clock_is_in_doubt) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 5, .known = 10}};
  SlotTotals totals = totals_of(counts);
  totals.clock_in_doubt = true;
  EXPECT_EQ(estimate_rate(totals, slots, at(97), std::nullopt).hi, std::nullopt);
}

TEST(Rate, hi_is_unknown_unless_every_slot_was_just_read) {
  const KeySlots slots(WindowShape::make(seconds(60), 6, milliseconds(20)), kNoPhase);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 10, .unsent = 2}};
  SlotTotals totals = totals_of(counts);
  totals.fresh = false;
  EXPECT_FALSE(estimate_rate(totals, slots, at(97), std::nullopt).hi.has_value());
  EXPECT_EQ(estimate_rate(totals, slots, at(97), std::nullopt).lo, 12U);
}

double figure_of(const Rate& rate, RateFigure figure) {
  if (figure == RateFigure::kEstimate) return rate.estimate;
  return static_cast<double>(figure == RateFigure::kLo ? rate.lo : rate.hi.value());
}

// Random hits; the true number in (now - W, now] is counted one by one.
RC_GTEST_PROP(Rate, bracket_holds_the_true_hits_and_the_estimate, ()) {
  const auto slot_count = *rc::gen::inRange<unsigned>(1, 12);
  const Key key{*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
  const WindowShape shape = WindowShape::make(seconds(60), slot_count, milliseconds(20));
  const KeySlots slots(shape, key);
  const auto now_us = *rc::gen::inRange<std::int64_t>(200'000'000, 400'000'000);
  const auto ages = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 150'000'000));
  std::map<SlotIndex, std::uint64_t> by_slot;
  std::uint64_t truth = 0;
  for (const std::int64_t age : ages) {
    ++by_slot[slots.slot_at(PopInstant(microseconds(now_us - age)))];
    truth += age < shape.window.count() ? 1 : 0;
  }
  std::vector<SlotCount> counts;
  for (const auto& [slot, hits] : by_slot) counts.push_back({.slot = slot, .known = hits});
  const PopInstant now{microseconds(now_us)};
  const Rate rate = estimate_rate(totals_of(counts), slots, now, std::nullopt);
  RC_ASSERT(rate.lo <= truth);
  RC_ASSERT(truth <= rate.hi.value());
  RC_ASSERT(static_cast<double>(rate.lo) <= rate.estimate + 1e-9);
  RC_ASSERT(rate.estimate <= static_cast<double>(*rate.hi) + 1e-9);

  const double level = *rc::gen::inRange(0, 20);
  for (const RateFigure figure : {RateFigure::kLo, RateFigure::kEstimate, RateFigure::kHi}) {
    const microseconds fall = time_until_figure_is(figure, level, totals_of(counts), slots, now, std::nullopt);
    const Rate fallen = estimate_rate(totals_of(counts), slots, now + fall, std::nullopt);
    RC_ASSERT(figure_of(fallen, figure) <= level + 1e-6);
    if (fall <= microseconds(2)) continue;
    const Rate before = estimate_rate(totals_of(counts), slots, now + fall - microseconds(2), std::nullopt);
    RC_ASSERT(figure_of(before, figure) > level - 1e-3);
  }
}

}  // namespace
}  // namespace popgate
