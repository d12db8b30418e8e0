// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge_totals.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace popgate {
namespace {

using std::chrono::seconds;

// A key of all zeros has phase 0: with 60 s in 6 slots, slot 9 is 90 .. 100 s.
constexpr Key kKey{0, 0};
constexpr BothInstants kNow{HostInstant(seconds(1000)), PopInstant(seconds(97))};

Rule rule_of(std::uint64_t limit) {
  Rule rule;
  rule.name = "flood";
  rule.number = 1;
  rule.limit = limit;
  rule.window = WindowShape::make(seconds(60), 6, milliseconds(20));
  rule.mitigate = seconds(10);
  identify(rule);
  return rule;
}

class JudgeTotals : public ::testing::Test {
 protected:
  JudgeTotals() { mitigations_.allow_originating(0); }

  JudgedTotals judge(const std::vector<SlotCount>& counts, std::uint64_t limit, BothInstants now = kNow) {
    const SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .fresh = true, .counters_lost = false};
    return judge_totals(totals, rule_of(limit), mitigations_, now);
  }

  Mitigations mitigations_{{.node_name = "a", .incarnation = 1}, [](const Mitigation&, const Origin&) {}};
};

TEST_F(JudgeTotals, exactly_limit_hits_pass_and_the_next_is_over) {
  EXPECT_FALSE(judge({{.slot = 9, .known = 100}}, 100).outcome.has_value());
  EXPECT_EQ(judge({{.slot = 9, .known = 101}}, 100).outcome, DecideOutcome::kDecided);
}

TEST_F(JudgeTotals, a_disabled_rule_judges_nobody) {
  Rule rule = rule_of(1);
  rule.enabled = false;
  const std::vector<SlotCount> counts{{.slot = 9, .known = 1000}};
  const SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .fresh = true};
  EXPECT_FALSE(judge_totals(totals, rule, mitigations_, kNow).outcome.has_value());
}

TEST_F(JudgeTotals, mitigation_lasts_until_a_waiting_client_would_be_admitted) {
  // 101 hits in slot 9: the estimate begins to fall at 150 s and is 99 when 2/101 of the slot have left the window, at
  // 150.198 s: 53.198 s from now, later than the 10 s of the rule.
  judge({{.slot = 9, .known = 101}}, 100);
  const Mitigation* entry = mitigations_.find(kKey).automatic;
  ASSERT_NE(entry, nullptr);
  EXPECT_NEAR(static_cast<double>((entry->until - kNow.host).count()), 53e6 + 10e6 * 2 / 101, 2);
  EXPECT_EQ(entry->evidence.lo, 101U);
  EXPECT_EQ(entry->evidence.limit, 100U);
}

// Under `count: all` the end has room for the denied request that was told it, so that request must not move it: a
// client that then came back in time would find another end.
TEST_F(JudgeTotals, the_denied_request_that_is_told_the_end_does_not_move_it) {
  Rule rule = rule_of(100);
  rule.mitigate = milliseconds(0);
  rule.count = CountMode::kAll;
  identify(rule);
  mitigations_.use_rules(std::make_shared<const RuleSet>(std::vector<Rule>{rule}), kNow.host);
  const auto judge_hits = [&](std::uint64_t before, std::uint64_t denied, seconds later) {
    const std::vector<SlotCount> counts{{.slot = 9, .known = before}, {.slot = 10, .known = denied}};
    const SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .fresh = true};
    return judge_totals(totals, rule, mitigations_, {kNow.host + later, kNow.pop + later}).outcome;
  };
  ASSERT_EQ(judge_hits(101, 0, seconds(0)), DecideOutcome::kDecided);
  const HostInstant told = mitigations_.find(kKey).automatic->until;  // 98 of 101 hits are left then
  EXPECT_EQ(judge_hits(101, 1, seconds(4)), DecideOutcome::kAlreadyLive);
  EXPECT_EQ(mitigations_.find(kKey).automatic->until, told);
  // One that did not wait takes the room of the next.
  EXPECT_EQ(judge_hits(101, 2, seconds(5)), DecideOutcome::kRenewed);
}

// The same in the middle of a mitigation: also where the figure is over the limit still, a request that is denied there
// is told the end that will hold.
TEST_F(JudgeTotals, a_denied_request_far_from_the_end_does_not_begin_the_mitigation_again) {
  Rule rule = rule_of(100);
  rule.mitigate = std::chrono::duration_cast<milliseconds>(2 * rule.window.window);
  rule.count = CountMode::kAll;
  identify(rule);
  mitigations_.use_rules(std::make_shared<const RuleSet>(std::vector<Rule>{rule}), kNow.host);
  const auto judge_hits = [&](std::uint64_t before, std::uint64_t denied, seconds later) {
    const std::vector<SlotCount> counts{{.slot = 9, .known = before}, {.slot = 12, .known = denied}};
    const SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .fresh = true};
    return judge_totals(totals, rule, mitigations_, {kNow.host + later, kNow.pop + later}).outcome;
  };
  ASSERT_EQ(judge_hits(101, 0, seconds(0)), DecideOutcome::kDecided);
  const HostInstant told = mitigations_.find(kKey).automatic->until;
  ASSERT_EQ(told, kNow.host + rule.mitigate);
  EXPECT_EQ(judge_hits(101, 20, seconds(30)), DecideOutcome::kAlreadyLive);
  EXPECT_EQ(mitigations_.find(kKey).automatic->until, told);
}

TEST_F(JudgeTotals, hits_before_a_lift_no_longer_count) {
  judge({{.slot = 9, .known = 101}}, 100);
  ASSERT_TRUE(mitigations_.lift({kKey, kNow.pop, "mistake"}, kNow.host, kNow.pop).ok());
  // A second later the same counters, and 100 more hits in the next slot: not over.
  const BothInstants later{kNow.host + seconds(4), kNow.pop + seconds(4)};
  EXPECT_FALSE(judge({{.slot = 9, .known = 101}, {.slot = 10, .known = 100}}, 100, later).outcome.has_value());
  EXPECT_EQ(judge({{.slot = 9, .known = 101}, {.slot = 10, .known = 101}}, 100, later).outcome,
            DecideOutcome::kDecided);
}

// Whatever the policy: who comes back when the mitigation ends, and makes the request that the rule grants, is not
// mitigated again.
RC_GTEST_PROP(JudgeTotalsProperty, a_client_that_waits_for_the_end_is_admitted, ()) {
  Rule rule = rule_of(static_cast<std::uint64_t>(*rc::gen::inRange(1, 60)));
  rule.policy = *rc::gen::element(Policy::kEstimate, Policy::kCertain, Policy::kCautious);
  rule.count = *rc::gen::element(CountMode::kAllowed, CountMode::kAll);
  rule.mitigate = milliseconds(*rc::gen::element(0, 100, 5000));
  identify(rule);
  std::vector<SlotCount> counts;
  for (SlotIndex slot = 3; slot <= 9; ++slot) {
    const auto hits = [] { return static_cast<std::uint64_t>(*rc::gen::inRange(0, 20)); };
    counts.push_back({.slot = slot, .known = hits(), .unsent = hits(), .hidden = hits()});
  }
  const bool lost = *rc::gen::arbitrary<bool>();
  Mitigations mitigations({.node_name = "a", .incarnation = 1}, [](const Mitigation&, const Origin&) {});
  mitigations.allow_originating(0);
  const auto judged = [&](BothInstants now, bool counters_lost) {
    const SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .fresh = true, .counters_lost = counters_lost};
    return judge_totals(totals, rule, mitigations, now);
  };
  RC_PRE(judged(kNow, lost).outcome.has_value());
  const microseconds wait = mitigations.find(kKey).automatic->until - kNow.host;
  const BothInstants back{kNow.host + wait, kNow.pop + wait};
  const SlotIndex slot = KeySlots(rule.window, kKey).slot_at(back.pop);
  const std::uint64_t denied = rule.count == CountMode::kAll ? 1 : 0;  // the one that was told how long to wait
  const auto held = std::find_if(counts.begin(), counts.end(), [&](const SlotCount& c) { return c.slot == slot; });
  RC_PRE(rule.limit > denied);
  if (held != counts.end()) held->known += 1 + denied;
  if (held == counts.end()) counts.push_back({.slot = slot, .known = 1 + denied});
  RC_ASSERT(!judged(back, false).outcome.has_value());
}

}  // namespace
}  // namespace popgate
