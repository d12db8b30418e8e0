// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memory_store.h"

#include <gtest/gtest.h>

#include "daemon/collect/ledger.h"
#include "daemon/rules.h"
#include "tests/daemon/count/test_key.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr RuleNumber kRule = 1;
const WindowShape kMinute = WindowShape::make(seconds(60), 6, milliseconds(20));
const PopInstant kNow{seconds(1'000'000)};

SharedRules rules_with(const WindowShape& shape) {
  Rule rule;
  rule.id = 10;
  rule.number = kRule;
  rule.window = shape;
  return std::make_shared<const RuleSet>(std::vector<Rule>{rule});
}

struct Seen {
  Key key;
  std::vector<SlotCount> slots;
  bool fresh;
  bool counters_lost;
  [[nodiscard]] std::uint64_t known() const {
    std::uint64_t sum = 0;
    for (const SlotCount& slot : slots) sum += slot.known;
    return sum;
  }
};

class Node {
 public:
  explicit Node(std::shared_ptr<MemoryCounters> counters)
      : store({std::move(counters), ledger.get(), rules_with(kMinute), 1000}, [this](const SlotTotals& totals,
                                                                                     PopInstant) {
          seen.push_back({totals.key, {totals.slots.begin(), totals.slots.end()}, totals.fresh, totals.counters_lost});
        }) {
    EXPECT_EQ(ledger->number_for(10), kRule);
  }
  void hit(const Key& key, std::uint64_t hits, PopInstant now = kNow) {
    const HitSum sum{key, kRule, KeySlots(kMinute, key).slot_at(now), hits};
    store.submit({&sum, 1}, now);
  }

  std::unique_ptr<Ledger> ledger = Ledger::in_memory();
  std::vector<Seen> seen;
  MemoryStore store;
};

TEST(MemoryStore, delivers_and_reports_within_submit) {
  Node node(std::make_shared<MemoryCounters>(100, 1));
  node.hit(test_key(1), 3);
  ASSERT_EQ(node.seen.size(), 1u);
  EXPECT_EQ(node.seen[0].known(), 3u);
  EXPECT_TRUE(node.seen[0].fresh);
  EXPECT_FALSE(node.seen[0].counters_lost);
  EXPECT_EQ(node.ledger->row(kRule)[LedgerColumn::kDelivered], 3u);
  EXPECT_TRUE(node.store.idle());
}

TEST(MemoryStore, nodes_that_share_counters_each_know_what_they_have_read) {
  const auto counters = std::make_shared<MemoryCounters>(100, 1);
  Node one(counters);
  Node other(counters);
  one.hit(test_key(1), 3);
  other.hit(test_key(1), 4);
  EXPECT_EQ(other.seen.back().known(), 7u);
  ASSERT_EQ(one.store.slots_of(test_key(1)).size(), 1u);
  EXPECT_EQ(one.store.slots_of(test_key(1))[0].known, 3u) << "it has not read since";
  one.hit(test_key(1), 1);
  EXPECT_EQ(one.seen.back().known(), 8u);
}

TEST(MemoryStore, a_flush_is_counted_whole_before_any_key_is_reported_and_each_key_once) {
  Node node(std::make_shared<MemoryCounters>(100, 1));
  const Key key = test_key(1);
  const SlotIndex slot = KeySlots(kMinute, key).slot_at(kNow);
  const std::vector<HitSum> sums{{key, kRule, slot - 1, 2}, {test_key(2), kRule, slot - 1, 1}, {key, kRule, slot, 5}};
  node.store.submit(sums, kNow);
  ASSERT_EQ(node.seen.size(), 2u);
  EXPECT_EQ(node.seen[0].known(), 7u);
  EXPECT_EQ(node.seen[0].slots.size(), 2u);
}

TEST(MemoryStore, hits_of_a_rule_that_does_not_exist_are_dropped_and_accounted) {
  Node node(std::make_shared<MemoryCounters>(100, 1));
  EXPECT_EQ(node.ledger->number_for(11), 2u);
  const HitSum sum{test_key(1), 2, KeySlots(kMinute, test_key(1)).slot_at(kNow), 3};
  node.store.submit({&sum, 1}, kNow);
  EXPECT_TRUE(node.seen.empty());
  EXPECT_EQ(node.ledger->row(2)[LedgerColumn::kDropped], 3u);
}

TEST(MemoryStore, slots_leave_with_the_window) {
  Node node(std::make_shared<MemoryCounters>(100, 1));
  node.hit(test_key(1), 3);
  node.hit(test_key(1), 1, kNow + seconds(71));
  EXPECT_EQ(node.seen.back().known(), 1u);
}

TEST(MemoryCounters, totals_add_up_per_key_and_slot) {
  MemoryCounters counters(100, 1);
  const SlotIndex slot = KeySlots(kMinute, test_key(1)).slot_at(kNow);
  EXPECT_EQ(counters.add({test_key(1), slot, 2}, kMinute, kNow), 2u);
  EXPECT_EQ(counters.add({test_key(1), slot, 3}, kMinute, kNow), 5u);
  EXPECT_EQ(counters.total(test_key(1), slot), 5u);
  EXPECT_EQ(counters.total(test_key(1), slot - 1), 0u);
  EXPECT_EQ(counters.total(test_key(2), slot), 0u);
}

TEST(MemoryCounters, slots_are_kept_for_window_slot_and_twice_the_tolerance) {
  MemoryCounters counters(100, 1);
  const Key key{0, 0};  // phase 0
  const PopInstant begin{seconds(1000)};
  counters.add({key, 100, 1}, kMinute, begin);  // slot 100: 1000 s .. 1010 s
  counters.add({key, 107, 1}, kMinute, PopInstant(seconds(1010) + seconds(70) + milliseconds(40) - microseconds(1)));
  EXPECT_EQ(counters.total(key, 100), 1u);
  counters.add({key, 108, 1}, kMinute, PopInstant(seconds(1010) + seconds(70) + milliseconds(40)));
  EXPECT_EQ(counters.total(key, 100), 0u);
}

TEST(MemoryCounters, at_the_bound_cold_keys_go_first_and_evicting_a_live_one_is_told) {
  MemoryCounters counters(64, 1);
  for (std::uint64_t i = 0; i < 64; ++i) counters.add({test_key(i), 1, 1}, kMinute, kNow);
  // Half of them go on; the others grow cold.
  const PopInstant later = kNow + seconds(200);
  for (std::uint64_t i = 0; i < 32; ++i) counters.add({test_key(i), 1, 1}, kMinute, later);
  for (std::uint64_t i = 100; i < 116; ++i) counters.add({test_key(i), 1, 1}, kMinute, later);
  EXPECT_EQ(counters.key_count(), 64u);
  EXPECT_FALSE(counters.counters_lost(kMinute, later)) << "of 16 sampled keys one was cold, each time";
  // Now every key is hot, and one has to go.
  for (std::uint64_t i = 200; i < 300; ++i) counters.add({test_key(i), 1, 1}, kMinute, later);
  EXPECT_EQ(counters.key_count(), 64u);
  EXPECT_TRUE(counters.counters_lost(kMinute, later));
  EXPECT_TRUE(counters.counters_lost(kMinute, later + seconds(70)));
  EXPECT_FALSE(counters.counters_lost(kMinute, later + seconds(71)));
}

}  // namespace
}  // namespace popgate
