// SPDX-License-Identifier: Apache-2.0
#include "daemon/window.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(microseconds t) { return PopInstant(t); }

// 60 s in 6 slots; a key of all zeros has phase 0, so slots start at multiples of 10 s.
const WindowShape kMinute = WindowShape::make(seconds(60), 6, milliseconds(20));
const Key kNoPhase{0, 0};

TEST(Window, an_instant_lies_in_one_half_open_slot) {
  const KeySlots slots(kMinute, kNoPhase);
  EXPECT_EQ(slots.slot_at(at(seconds(10))), 1);
  EXPECT_EQ(slots.slot_at(at(seconds(20) - microseconds(1))), 1);
  EXPECT_EQ(slots.slot_at(at(seconds(20))), 2);
  EXPECT_EQ(slots.start(1), at(seconds(10)));
  EXPECT_EQ(slots.end(1), at(seconds(20)));
}

TEST(Window, instants_before_the_epoch_round_down_too) {
  const KeySlots slots(kMinute, kNoPhase);
  EXPECT_EQ(slots.slot_at(at(microseconds(-1))), -1);
  EXPECT_EQ(slots.slot_at(at(seconds(-10))), -1);
  EXPECT_EQ(slots.slot_at(at(seconds(-10) - microseconds(1))), -2);
}

TEST(Window, phase_shifts_every_edge_by_the_same_time) {
  const Key shifted{3'000'000, 0};  // phase_bits 3,000,000: 3 s of a 10 s slot
  const KeySlots slots(kMinute, shifted);
  EXPECT_EQ(slots.start(1), at(seconds(7)));
  EXPECT_EQ(slots.slot_at(at(seconds(7))), 1);
  EXPECT_EQ(slots.slot_at(at(seconds(7) - microseconds(1))), 0);
}

TEST(Window, slots_that_touch_cover_the_window_widened_by_the_tolerance) {
  const KeySlots slots(kMinute, kNoPhase);
  // (95 - 60 - 0.02, 95 + 0.02]: from slot 3 (30 .. 40 s) to slot 9 (90 .. 100 s).
  EXPECT_EQ(slots.first_touching(at(seconds(95))), 3);
  EXPECT_EQ(slots.last_touching(at(seconds(95))), 9);
  // At 100 s the widened window reaches back to 39.98 s, slot 3, and on to 100.02 s, slot 10: k + 2 slots.
  EXPECT_EQ(slots.first_touching(at(seconds(100))), 3);
  EXPECT_EQ(slots.last_touching(at(seconds(100))), 10);
}

TEST(Window, slot_length_is_rounded_up_so_that_k_slots_cover_the_window) {
  const WindowShape shape = WindowShape::make(seconds(1), 6, milliseconds(5));
  EXPECT_EQ(shape.slot, microseconds(166'667));
  EXPECT_GE(shape.slot * 6, shape.window);
}

}  // namespace
}  // namespace popgate
