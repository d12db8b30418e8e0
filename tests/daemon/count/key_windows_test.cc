// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/key_windows.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "daemon/collect/ledger.h"
#include "tests/daemon/count/test_key.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr RuleNumber kRule = 1;
const WindowShape kMinute = WindowShape::make(seconds(60), 6, milliseconds(20));
const PopInstant kNow{seconds(1'000'000)};

SlotIndex slot_of_now(const Key& key) { return KeySlots(kMinute, key).slot_at(kNow); }
HitSum sum_of(const Key& key, std::uint64_t hits) { return {key, kRule, slot_of_now(key), hits}; }

class Windows : public ::testing::Test {
 protected:
  explicit Windows(KeyWindows::Limits limits = {100, 10'000})
      : windows(
            limits, [](const Key&) { return ShardIndex{3}; }, *ledger) {
    EXPECT_EQ(ledger->number_for(10), kRule);
    EXPECT_EQ(ledger->number_for(11), kRule + 1);
  }
  [[nodiscard]] std::uint64_t column(LedgerColumn column) const { return ledger->row(kRule)[column]; }
  /// As the shard does it: everything unsent of a key is on its way.
  std::uint64_t send(WindowIndex index) {
    std::uint64_t hits = 0;
    for (CountedSlot& slot : windows.at(index).slots) hits += windows.begin_send(index, slot);
    windows.pin(index);
    return hits;
  }
  [[nodiscard]] WindowIndex take(const Key& key, std::uint64_t hits) {
    return windows.take(sum_of(key, hits), kMinute, kNow);
  }
  void deliver(WindowIndex index, std::uint64_t hits) {
    windows.delivered(index, windows.at(index).slots.back().slot, hits);
    windows.unpin(index);
  }

  std::unique_ptr<Ledger> ledger = Ledger::in_memory();
  KeyWindows windows;
};

TEST_F(Windows, a_key_remembers_its_shard_and_gathers_its_hits_per_slot) {
  const Key key = test_key(1);
  const WindowIndex index = take(key, 3);
  EXPECT_EQ(take(key, 4), index);
  EXPECT_EQ(windows.take({key, kRule, slot_of_now(key) - 1, 5}, kMinute, kNow), index);
  const KeyWindow& window = windows.at(index);
  EXPECT_EQ(window.shard, 3);
  ASSERT_EQ(window.slots.size(), 2u);
  EXPECT_EQ(window.slots[0].unsent, 5u);
  EXPECT_EQ(window.slots[1].unsent, 7u);
  EXPECT_EQ(windows.unsent_hits(), 12u);
}

TEST_F(Windows, hits_end_as_delivered_uncertain_or_refused_once) {
  const WindowIndex index = take(test_key(1), 10);
  EXPECT_EQ(send(index), 10u);
  const SlotIndex slot = slot_of_now(test_key(1));
  windows.delivered(index, slot, 5);
  windows.uncertain(index, slot, 3);
  windows.refused(index, slot, 2);
  EXPECT_EQ(column(LedgerColumn::kDelivered), 5u);
  EXPECT_EQ(column(LedgerColumn::kUncertain), 3u);
  EXPECT_EQ(column(LedgerColumn::kDropped), 2u);
  EXPECT_EQ(windows.in_flight_hits(), 0u);
  std::vector<SlotCount> counts;
  KeyWindows::list_slots(windows.at(index), counts);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].hidden, 3u) << "an uncertain hit may or may not be in what is known";
}

TEST_F(Windows, what_is_put_back_is_unsent_again) {
  const WindowIndex index = take(test_key(1), 10);
  send(index);
  windows.put_back(index, slot_of_now(test_key(1)), 10);
  EXPECT_EQ(windows.unsent_hits(), 10u);
  EXPECT_EQ(windows.in_flight_hits(), 0u);
  EXPECT_EQ(send(index), 10u);
}

TEST_F(Windows, a_sum_whose_slot_has_left_the_window_is_expired) {
  const Key key = test_key(1);
  const SlotIndex too_old = KeySlots(kMinute, key).first_touching(kNow) - 1;
  EXPECT_EQ(windows.take({key, kRule, too_old, 4}, kMinute, kNow), kNoWindow);
  EXPECT_EQ(column(LedgerColumn::kExpired), 4u);
  EXPECT_EQ(windows.key_count(), 0u);
}

TEST_F(Windows, unsent_hits_expire_with_their_slot_and_what_is_in_flight_waits_for_its_reply) {
  const WindowIndex index = take(test_key(1), 10);
  send(index);
  EXPECT_EQ(take(test_key(1), 5), index);
  const PopInstant later = kNow + seconds(71);  // window, slot and tolerance have passed
  windows.expire(index, later);
  EXPECT_EQ(column(LedgerColumn::kExpired), 5u);
  EXPECT_EQ(windows.unsent_hits(), 0u);
  deliver(index, 10);
  EXPECT_EQ(column(LedgerColumn::kDelivered), 10u);
  windows.expire(index, later);
  EXPECT_TRUE(windows.at(index).slots.empty());
}

TEST_F(Windows, sweeping_forgets_keys_that_hold_nothing) {
  const WindowIndex index = take(test_key(1), 1);
  send(index);
  deliver(index, 1);
  windows.sweep(10, kNow);
  EXPECT_EQ(windows.key_count(), 1u);
  windows.sweep(10, kNow + seconds(71));
  EXPECT_EQ(windows.key_count(), 0u);
  EXPECT_EQ(windows.find(test_key(1)), kNoWindow);
}

// Held back while the clock was a quarter of a minute ahead. In its slot it would count again when that time comes.
TEST_F(Windows, unsent_hits_of_a_slot_that_is_ahead_since_the_clock_was_set_back_are_dropped) {
  const PopInstant ahead = kNow + seconds(15);
  const Key key = test_key(1);
  const SlotIndex slot = KeySlots(kMinute, key).slot_at(ahead);
  const WindowIndex index = windows.take({key, kRule, slot, 3}, kMinute, ahead);
  EXPECT_EQ(take(key, 4), index);
  windows.expire(index, kNow);
  EXPECT_EQ(column(LedgerColumn::kDropped), 3u);
  EXPECT_EQ(windows.unsent_hits(), 4u) << "those of now stay";
  windows.expire(index, kNow);
  EXPECT_EQ(column(LedgerColumn::kDropped), 3u);
}

TEST_F(Windows, a_hit_stamped_ahead_of_the_clock_counts_in_the_slot_of_now_and_the_tolerance) {
  const Key key = test_key(1);
  const WindowIndex index = windows.take({key, kRule, slot_of_now(key) + 100, 4}, kMinute, kNow);
  ASSERT_NE(index, kNoWindow);
  EXPECT_EQ(windows.at(index).slots.back().slot, KeySlots(kMinute, key).last_touching(kNow));
}

TEST_F(Windows, a_key_under_two_rules_keeps_every_row_exact) {
  const WindowIndex index = take(test_key(1), 1);
  EXPECT_EQ(windows.take({test_key(1), kRule + 1, slot_of_now(test_key(1)), 2}, kMinute, kNow), kNoWindow)
      << "while hits of the first rule are under way";
  EXPECT_EQ(ledger->row(kRule + 1)[LedgerColumn::kDropped], 2u);
  send(index);
  deliver(index, 1);
  const WindowIndex other = windows.take({test_key(1), kRule + 1, slot_of_now(test_key(1)), 2}, kMinute, kNow);
  ASSERT_NE(other, kNoWindow);
  EXPECT_EQ(windows.at(other).rule, kRule + 1);
}

class FewWindows : public Windows {
 protected:
  FewWindows() : Windows({3, 1000}) {}
};

TEST_F(FewWindows, the_coldest_key_with_nothing_under_way_makes_room) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    const WindowIndex index = take(test_key(i), 1);
    send(index);
    deliver(index, 1);
  }
  const WindowIndex first = take(test_key(0), 1);  // hot again, and unsent
  ASSERT_NE(take(test_key(3), 1), kNoWindow);
  EXPECT_EQ(windows.find(test_key(0)), first);
  EXPECT_EQ(windows.find(test_key(1)), kNoWindow) << "the coldest";
  EXPECT_NE(windows.find(test_key(2)), kNoWindow);
  EXPECT_EQ(windows.forgotten_keys(), 1u);
}

TEST_F(FewWindows, hits_of_a_new_key_are_dropped_while_every_key_is_pinned) {
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_NE(take(test_key(i), 1), kNoWindow);
  EXPECT_EQ(take(test_key(3), 9), kNoWindow);
  EXPECT_EQ(column(LedgerColumn::kDropped), 9u);
  EXPECT_NE(take(test_key(0), 1), kNoWindow) << "a key that is held goes on";
}

class FewSlots : public Windows {
 protected:
  FewSlots() : Windows({100, 20}) {}  // room for two keys of k + 2 = 8 slots
};

TEST_F(FewSlots, slots_are_bounded_too) {
  EXPECT_NE(take(test_key(0), 1), kNoWindow);
  EXPECT_NE(take(test_key(1), 1), kNoWindow);
  EXPECT_EQ(take(test_key(2), 1), kNoWindow);
}

TEST(CountedSlot, known_is_the_largest_total_ever_read) {
  CountedSlot slot;
  EXPECT_FALSE(KeyWindows::observe(slot, 7, kNow, PopInstant::min()));
  EXPECT_TRUE(KeyWindows::observe(slot, 3, kNow, PopInstant::min())) << "a total below one read before: lost";
  EXPECT_EQ(slot.known, 7u);
  EXPECT_FALSE(KeyWindows::observe(slot, 4, kNow, PopInstant::min())) << "lost once, seen once";
  EXPECT_EQ(slot.known, 7u);
  EXPECT_FALSE(KeyWindows::observe(slot, 9, kNow, PopInstant::min()));
  EXPECT_EQ(slot.known, 9u);
}

TEST(CountedSlot, a_fall_is_explained_by_a_loss_after_its_last_read) {
  CountedSlot slot;
  EXPECT_FALSE(KeyWindows::observe(slot, 7, kNow, PopInstant::min()));
  const PopInstant loss = kNow + seconds(1);
  EXPECT_FALSE(KeyWindows::observe(slot, 3, kNow + seconds(2), loss));
  EXPECT_TRUE(KeyWindows::observe(slot, 1, kNow + seconds(3), loss)) << "read since that loss: another one";
}

TEST(CountedSlot, is_final_once_read_after_everything_that_can_still_come) {
  KeyWindow window;
  window.key = Key{0, 0};
  window.shape = kMinute;
  CountedSlot slot;
  slot.slot = 5;  // 50 s .. 60 s
  const Finality finality{seconds(2), PopInstant::min()};
  EXPECT_FALSE(KeyWindows::is_final(window, slot, finality)) << "never read";
  // End of the slot + D + settle + 2 D.
  const PopInstant final_from{seconds(60) + seconds(2) + 3 * milliseconds(20)};
  slot.read_at = final_from - microseconds(1);
  EXPECT_FALSE(KeyWindows::is_final(window, slot, finality));
  slot.read_at = final_from;
  EXPECT_TRUE(KeyWindows::is_final(window, slot, finality));
  // The shard was away: other nodes may hold hits of that slot which they can send only now.
  const Finality reachable_again{seconds(2), PopInstant(seconds(100))};
  EXPECT_FALSE(KeyWindows::is_final(window, slot, reachable_again));
  slot.read_at = PopInstant(seconds(102) + 2 * milliseconds(20));
  EXPECT_TRUE(KeyWindows::is_final(window, slot, reachable_again));
}

// Whatever happens in whatever order, every hit that was taken is unsent, in flight, or in the ledger once.
TEST(KeyWindows, no_hit_is_lost_or_accounted_twice) {
  const bool holds = rc::check([] {
    const auto ledger = Ledger::in_memory();
    RC_ASSERT(ledger->number_for(10) == kRule);
    KeyWindows windows(
        {4, 60}, [](const Key&) { return ShardIndex{0}; }, *ledger);
    struct Flight {
      WindowIndex index;
      SlotIndex slot;
      std::uint64_t hits;
    };
    std::vector<Flight> flights;
    std::uint64_t taken = 0;
    PopInstant now = kNow;
    const auto steps = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::arbitrary<std::uint64_t>());
    for (const std::uint64_t step : steps) {
      const std::uint64_t amount = step >> 40 & 0xff;
      switch (step % 8) {
        case 0:
        case 1:
        case 2: {
          const Key key = test_key(step >> 8 & 7);
          const SlotIndex slot = KeySlots(kMinute, key).slot_at(now) - static_cast<SlotIndex>(step >> 16 & 7);
          (void)windows.take({key, kRule, slot, amount}, kMinute, now);
          taken += amount;
          break;
        }
        case 3: {
          const WindowIndex index = windows.find(test_key(step >> 8 & 7));
          if (index == kNoWindow) break;
          for (CountedSlot& slot : windows.at(index).slots) {
            if (slot.unsent == 0) continue;
            const std::uint64_t hits = windows.begin_send(index, slot);
            windows.pin(index);
            flights.push_back({index, slot.slot, hits});
          }
          break;
        }
        case 4:
          now += seconds(amount % 20);
          break;
        case 5:
          windows.sweep(10, now);
          break;
        default: {
          if (flights.empty()) break;
          std::swap(flights[(step >> 8 & 0xffff) % flights.size()], flights.back());
          const Flight flight = flights.back();
          flights.pop_back();
          if (amount % 4 == 0) windows.put_back(flight.index, flight.slot, flight.hits);
          if (amount % 4 == 1) windows.delivered(flight.index, flight.slot, flight.hits);
          if (amount % 4 == 2) windows.uncertain(flight.index, flight.slot, flight.hits);
          if (amount % 4 == 3) windows.refused(flight.index, flight.slot, flight.hits);
          windows.unpin(flight.index);
          break;
        }
      }
      const LedgerRow row = ledger->row(kRule);
      std::uint64_t flying = 0;
      for (const Flight& flight : flights) flying += flight.hits;
      RC_ASSERT(windows.in_flight_hits() == flying);
      RC_ASSERT(taken == row[LedgerColumn::kDelivered] + row[LedgerColumn::kUncertain] + row[LedgerColumn::kDropped] +
                             row[LedgerColumn::kExpired] + windows.unsent_hits() + flying);
      RC_ASSERT(windows.key_count() <= 4u);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace popgate
