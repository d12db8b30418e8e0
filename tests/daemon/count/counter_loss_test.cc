// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_loss.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::seconds;

const WindowShape kMinute = WindowShape::make(seconds(60), 6, milliseconds(20));

PopInstant at(int second) { return PopInstant(seconds(1'000'000 + second)); }

/// A shard whose generation was read at second 1.
CounterLoss met() {
  CounterLoss loss;
  EXPECT_FALSE(loss.generation_read(77, at(1), at(1)));
  return loss;
}

TEST(CounterLoss, a_shard_that_keeps_its_generation_and_totals_has_lost_nothing) {
  CounterLoss loss = met();
  CountedSlot slot;
  EXPECT_FALSE(loss.slot_read(slot, 5, at(2), at(2)));
  EXPECT_FALSE(loss.generation_read(77, at(2), at(2)));
  EXPECT_FALSE(loss.slot_read(slot, 5, at(3), at(3)));
  EXPECT_FALSE(loss.affects(kMinute, at(3)));
}

TEST(CounterLoss, another_generation_or_none_is_a_loss) {
  CounterLoss another = met();
  EXPECT_TRUE(another.generation_read(78, at(2), at(2)));
  CounterLoss none = met();
  EXPECT_TRUE(none.generation_read(std::nullopt, at(2), at(2)));
  EXPECT_TRUE(none.take_missing_generation());
  EXPECT_FALSE(none.take_missing_generation()) << "once for each read";
}

TEST(CounterLoss, one_loss_is_noticed_once_whatever_shows_it_first) {
  CounterLoss loss = met();
  CountedSlot one;
  CountedSlot other;
  EXPECT_FALSE(loss.slot_read(one, 5, at(2), at(2)));
  EXPECT_FALSE(loss.slot_read(other, 5, at(2), at(2)));
  EXPECT_FALSE(loss.generation_read(77, at(2), at(2)));
  EXPECT_TRUE(loss.slot_read(one, 1, at(10), at(10)));
  EXPECT_FALSE(loss.generation_read(std::nullopt, at(10), at(10)));
  EXPECT_FALSE(loss.slot_read(other, 0, at(20), at(20)));
  EXPECT_FALSE(loss.generation_read(78, at(11), at(11))) << "the new one";
  EXPECT_TRUE(loss.slot_read(one, 0, at(30), at(30)) || loss.generation_read(79, at(30), at(30))) << "a second loss";
}

TEST(CounterLoss, affects_upper_bounds_for_window_slot_and_twice_the_tolerance) {
  CounterLoss loss = met();
  EXPECT_TRUE(loss.generation_read(78, at(100), at(100)));
  EXPECT_TRUE(loss.affects(kMinute, at(170)));
  EXPECT_TRUE(loss.affects(kMinute, at(170) + milliseconds(40) - microseconds(1)));
  EXPECT_FALSE(loss.affects(kMinute, at(170) + milliseconds(40)));
}

TEST(CounterLoss, the_first_contact_tells_of_a_restart_before_it) {
  CounterLoss loss;
  EXPECT_FALSE(loss.generation_read(CounterLoss::new_generation(at(1), 12345), at(31), at(31)));
  EXPECT_TRUE(loss.affects(kMinute, at(71)));
  EXPECT_FALSE(loss.affects(kMinute, at(72))) << "seventy seconds after the generation's birth";
}

TEST(CounterLoss, a_restart_that_nobody_here_looked_at_shows_by_the_birth_of_what_stands_there_next) {
  CounterLoss loss = met();
  EXPECT_TRUE(loss.generation_read(std::nullopt, at(10), at(10)));
  EXPECT_FALSE(loss.generation_read(CounterLoss::new_generation(at(60), 1), at(61), at(61))) << "of that loss, or so";
  EXPECT_TRUE(loss.affects(kMinute, at(130)));
  EXPECT_FALSE(loss.affects(kMinute, at(131)));
}

TEST(CounterLoss, generation_of_an_earlier_release_says_nothing_of_the_past) {
  CounterLoss loss;
  EXPECT_FALSE(loss.generation_read(std::uint64_t{1} << 63, at(1), at(1)));
  EXPECT_TRUE(loss.affects(kMinute, at(71)));
  EXPECT_FALSE(loss.affects(kMinute, at(72)));
}

TEST(CounterLoss, two_generations_of_one_millisecond_differ) {
  EXPECT_NE(CounterLoss::new_generation(at(1), 1), CounterLoss::new_generation(at(1), 2));
  EXPECT_LT(CounterLoss::new_generation(at(1), UINT64_MAX), CounterLoss::new_generation(at(2), 0));
}

TEST(CounterLoss, the_first_contact_with_an_unmarked_shard_is_no_loss_but_its_past_is_unknown) {
  CounterLoss loss;
  EXPECT_FALSE(loss.generation_read(std::nullopt, at(1), at(1)));
  EXPECT_TRUE(loss.take_missing_generation());
  EXPECT_TRUE(loss.affects(kMinute, at(2)));
  EXPECT_FALSE(loss.affects(kMinute, at(72)));
}

}  // namespace
}  // namespace popgate
