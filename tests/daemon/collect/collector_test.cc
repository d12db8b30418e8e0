// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/collector.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(microseconds t) { return PopInstant(t); }

Rule rule_numbered(RuleNumber number, seconds window = seconds(60)) {
  Rule rule;
  rule.name = "rule " + std::to_string(number);
  rule.number = number;
  rule.key.push_back({});
  rule.limit = 10;
  rule.window = WindowShape::make(window, 6, milliseconds(20));
  return rule;
}

SharedRules set_of(std::vector<Rule> rules) {
  for (Rule& rule : rules) identify(rule);
  return std::make_shared<const RuleSet>(std::move(rules));
}

Hit hit(std::uint64_t key, RuleNumber rule, microseconds stamp, std::uint32_t cost = 1) {
  return {{key, 0}, stamp.count(), rule, cost};
}

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() : ledger_(Ledger::in_memory()), a_(*ledger_->number_for(1)), b_(*ledger_->number_for(2)) {}

  [[nodiscard]] Collector collector(std::size_t sums_max = 1000) const { return {{sums_max, 99}, *ledger_}; }
  [[nodiscard]] std::uint64_t column(RuleNumber rule, LedgerColumn column) const { return ledger_->row(rule)[column]; }

  std::unique_ptr<Ledger> ledger_;
  RuleNumber a_;
  RuleNumber b_;
};

// Key 0 has phase 0: slots of 10 s begin at multiples of 10 s.
TEST_F(CollectorTest, adds_up_per_key_rule_and_slot_of_the_stamp) {
  Collector collector = this->collector();
  collector.use_rules(set_of({rule_numbered(a_), rule_numbered(b_)}));
  collector.add(hit(0, a_, seconds(100)), at(seconds(105)));
  collector.add(hit(0, a_, seconds(109), 4), at(seconds(109)));
  collector.add(hit(0, a_, seconds(110)), at(seconds(110)));
  collector.add(hit(0, b_, seconds(100)), at(seconds(110)));
  collector.add(hit(1, a_, seconds(105)), at(seconds(110)));
  std::vector<HitSum> sums(3);  // what it held is replaced
  collector.flush(at(seconds(111)), sums);
  ASSERT_EQ(sums.size(), 4U);
  EXPECT_EQ(sums[0].hits, 5U);
  EXPECT_EQ(sums[0].slot, 10);
  EXPECT_EQ(sums[0].rule, a_);
  EXPECT_EQ(sums[1].slot, 11);
  EXPECT_EQ(sums[1].hits, 1U);
  EXPECT_EQ(sums[2].rule, b_);
  EXPECT_EQ(sums[3].key.hi, 1U);
  collector.flush(at(seconds(112)), sums);
  EXPECT_TRUE(sums.empty());
}

TEST_F(CollectorTest, a_late_hit_counts_in_its_own_slot_until_that_has_left_the_window_and_then_expires) {
  Collector collector = this->collector();
  collector.use_rules(set_of({rule_numbered(a_)}));
  std::vector<HitSum> sums;
  // Slot 0 is 0 .. 10 s; it touches (now - 60 - 0.02, now] until now = 70.02 s.
  collector.add(hit(0, a_, seconds(9)), at(seconds(70)));
  collector.flush(at(seconds(70)), sums);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].slot, 0);
  collector.add(hit(0, a_, seconds(9), 3), at(seconds(70) + milliseconds(20)));
  collector.flush(at(seconds(71)), sums);
  EXPECT_TRUE(sums.empty());
  EXPECT_EQ(column(a_, LedgerColumn::kExpired), 3U);
}

TEST_F(CollectorTest, a_sum_whose_slot_leaves_the_window_before_the_flush_expires) {
  Collector collector = this->collector();
  collector.use_rules(set_of({rule_numbered(a_)}));
  std::vector<HitSum> sums;
  collector.add(hit(0, a_, seconds(9), 5), at(seconds(10)));
  collector.flush(at(seconds(75)), sums);
  EXPECT_TRUE(sums.empty());
  EXPECT_EQ(column(a_, LedgerColumn::kExpired), 5U);
}

TEST_F(CollectorTest, stamps_ahead_of_the_clock_are_dropped_and_any_number_is_survived) {
  Collector collector = this->collector();
  collector.use_rules(set_of({rule_numbered(a_)}));
  const PopInstant now = at(seconds(1000));
  collector.add(hit(0, a_, seconds(1000) + milliseconds(20)), now);  // within the tolerance
  EXPECT_EQ(column(a_, LedgerColumn::kDropped), 0U);
  collector.add(hit(0, a_, seconds(1000) + milliseconds(21)), now);
  collector.add(hit(0, a_, microseconds(INT64_MAX)), now);
  EXPECT_EQ(column(a_, LedgerColumn::kDropped), 2U);
  collector.add(hit(0, a_, microseconds(INT64_MIN)), now);
  collector.add(hit(0, a_, microseconds(0)), now);
  EXPECT_EQ(column(a_, LedgerColumn::kExpired), 2U);
}

TEST_F(CollectorTest, without_room_for_another_sum_new_keys_are_dropped_and_known_ones_still_count) {
  Collector collector = this->collector(3);
  collector.use_rules(set_of({rule_numbered(a_)}));
  for (std::uint64_t key = 0; key < 5; ++key) collector.add(hit(key, a_, seconds(100), 2), at(seconds(100)));
  collector.add(hit(1, a_, seconds(100), 7), at(seconds(100)));
  EXPECT_EQ(column(a_, LedgerColumn::kDropped), 4U);
  std::vector<HitSum> sums;
  collector.flush(at(seconds(100)), sums);
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[1].hits, 9U);
  collector.add(hit(4, a_, seconds(100)), at(seconds(100)));
  EXPECT_EQ(collector.sums(), 1U) << "a flush makes room";
}

TEST_F(CollectorTest, hits_of_a_rule_that_is_gone_or_disabled_are_dropped) {
  Collector collector = this->collector();
  Rule disabled = rule_numbered(b_);
  disabled.enabled = false;
  collector.use_rules(set_of({disabled}));
  collector.add(hit(0, a_, seconds(100), 3), at(seconds(100)));
  collector.add(hit(0, b_, seconds(100), 4), at(seconds(100)));
  EXPECT_EQ(column(a_, LedgerColumn::kDropped), 3U);
  EXPECT_EQ(column(b_, LedgerColumn::kDropped), 4U);
}

TEST_F(CollectorTest, new_rules_keep_the_sums_of_rules_whose_slots_are_the_same_and_drop_the_others) {
  Collector collector = this->collector();
  collector.use_rules(set_of({rule_numbered(a_), rule_numbered(b_)}));
  collector.add(hit(0, a_, seconds(100), 2), at(seconds(100)));
  collector.add(hit(0, b_, seconds(100), 3), at(seconds(100)));
  Rule raised = rule_numbered(a_);
  raised.limit = 1000;
  collector.use_rules(set_of({raised, rule_numbered(b_, seconds(30))}));
  EXPECT_EQ(column(a_, LedgerColumn::kDropped), 0U);
  EXPECT_EQ(column(b_, LedgerColumn::kDropped), 3U);
  collector.add(hit(0, a_, seconds(100)), at(seconds(100)));
  std::vector<HitSum> sums;
  collector.flush(at(seconds(100)), sums);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].hits, 3U);
}

TEST_F(CollectorTest, every_figure_has_a_name_and_they_add_up) {
  Collector collector = this->collector(1);
  collector.use_rules(set_of({rule_numbered(a_)}));
  collector.add(hit(0, a_, seconds(100)), at(seconds(100)));
  collector.add(hit(1, a_, seconds(100)), at(seconds(100)));  // no room
  collector.add(hit(0, a_, seconds(1)), at(seconds(100)));    // late
  collector.add(hit(0, a_, seconds(200)), at(seconds(100)));  // ahead
  collector.add(hit(0, b_, seconds(100)), at(seconds(100)));  // no rule
  std::map<std::string, double> figures;
  collector.visit([&](const Metric& metric) { figures[std::string(metric.name)] = metric.value; });
  EXPECT_EQ(figures["popgate_collect_hits_added"], 5);
  EXPECT_EQ(figures["popgate_collect_hits_dropped_full"], 1);
  EXPECT_EQ(figures["popgate_collect_hits_expired"], 1);
  EXPECT_EQ(figures["popgate_collect_hits_dropped_ahead"], 1);
  EXPECT_EQ(figures["popgate_collect_hits_dropped_rule"], 1);
  EXPECT_EQ(figures["popgate_collect_sums"], 1);
}

// Against a plain map, with keys that share index places often.
RC_GTEST_PROP(CollectorProperty, sums_equal_a_plain_map, ()) {
  const auto ledger = Ledger::in_memory();
  const RuleNumber rule = *ledger->number_for(1);
  Collector collector({5000, 7}, *ledger);
  collector.use_rules(set_of({rule_numbered(rule)}));
  std::map<std::pair<std::uint64_t, SlotIndex>, std::uint64_t> expected;
  const auto hits = *rc::gen::container<std::vector<std::tuple<std::uint64_t, int, std::uint32_t>>>(rc::gen::tuple(
      rc::gen::inRange<std::uint64_t>(0, 3000), rc::gen::inRange(0, 60), rc::gen::inRange<std::uint32_t>(1, 100)));
  const PopInstant now = at(seconds(1000));
  for (int repeat = 0; repeat < 20; ++repeat) {
    for (const auto& [key, age, cost] : hits) {
      const std::uint64_t spread = key + static_cast<std::uint64_t>(repeat) * 7919;
      const microseconds stamp = seconds(1000 - age);
      collector.add(hit(spread, rule, stamp, cost), now);
      const auto phase = static_cast<std::int64_t>(spread % 10'000'000);  // phase_bits is hi when lo is 0
      expected[{spread, (stamp.count() + phase) / 10'000'000}] += cost;
    }
  }
  std::vector<HitSum> sums;
  collector.flush(now, sums);
  RC_ASSERT(sums.size() == expected.size());
  for (const HitSum& sum : sums) RC_ASSERT(sum.hits == (expected[{sum.key.hi, sum.slot}]));
}

}  // namespace
}  // namespace popgate
