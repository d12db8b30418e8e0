// SPDX-License-Identifier: Apache-2.0
//
// What rules do while the shard of a key cannot be counted on.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "daemon/mitigate/closed_keys.h"
#include "daemon/mitigate/judge_totals.h"

namespace popgate {
namespace {

using std::chrono::seconds;

// A key of all zeros has phase 0: with 60 s in 6 slots, slot 9 is 90 .. 100 s.
constexpr Key kKey{0, 0};
constexpr BothInstants kNow{HostInstant(seconds(1000)), PopInstant(seconds(97))};
constexpr std::uint32_t kMembers = 3;

Rule rule_with(OnCounterFailure mode, std::uint64_t limit, Policy policy = Policy::kEstimate) {
  Rule rule;
  rule.name = "flood";
  rule.number = 1;
  rule.limit = limit;
  rule.window = WindowShape::make(seconds(60), 6, milliseconds(20));
  rule.mitigate = seconds(10);
  rule.policy = policy;
  rule.on_counter_failure = mode;
  identify(rule);
  return rule;
}

class Degraded : public ::testing::Test {
 protected:
  Degraded() { mitigations_.allow_originating(0); }

  JudgedTotals judge(const Rule& rule, const std::vector<SlotCount>& counts, BothInstants now = kNow) {
    const SlotTotals totals{
        .key = kKey, .rule = 1, .slots = counts, .fresh = false, .counters_lost = false, .degraded = true};
    return judge_totals(totals, rule, mitigations_, now, kMembers);
  }
  /// How many own hits pass when so many were known.
  std::uint64_t own_hits_that_pass(const Rule& rule, std::uint64_t known) {
    std::uint64_t own = 0;
    while (own < 1000 && !judge(rule, {{.slot = 9, .known = known, .unsent = own + 1}}).outcome) ++own;
    return own;
  }
  const Mitigation& entry() const { return *mitigations_.find(kKey).automatic; }
  double metric(std::string_view name, std::string_view label = {}) const {
    double sum = 0;
    mitigations_.visit([&](const Metric& m) {
      if (m.name == name && (label.empty() || m.label_value == label)) sum += m.value;
    });
    return sum;
  }

  std::vector<Mitigation> changes_;
  Mitigations mitigations_{{.node_name = "a", .incarnation = 1},
                           [this](const Mitigation& m, const Origin&) { changes_.push_back(m); }};
};

TEST_F(Degraded, local_grants_each_member_its_part_of_the_limit_rounded_up) {
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 30), 0), 10U);
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 31), 0), 11U);
}

TEST_F(Degraded, local_lets_one_request_pass_whatever_the_limit) {
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 1), 0), 1U);
  Rule rule = rule_with(OnCounterFailure::kLocal, 12);
  rule.cost = 10;
  EXPECT_EQ(own_hits_that_pass(rule, 0), 10U);
}

// 24 known of 30: the room of 6 is shared by three.
TEST_F(Degraded, local_divides_the_room_that_the_last_totals_left) {
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 30), 24), 2U);
  EXPECT_EQ(entry().evidence.limit, 26U);
}

TEST_F(Degraded, a_client_within_the_limit_by_known_totals_is_not_met_by_the_failure_itself) {
  EXPECT_FALSE(judge(rule_with(OnCounterFailure::kLocal, 30), {{.slot = 9, .known = 29, .unsent = 1}}).outcome);
}

TEST_F(Degraded, local_under_certain_holds_own_hits_against_the_whole_limit) {
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 30, Policy::kCertain), 0), 30U);
  EXPECT_EQ(entry().evidence.limit, 30U);
  EXPECT_EQ(entry().evidence.lo, 31U);
}

TEST_F(Degraded, certain_mitigates_nobody_new_while_the_own_clock_is_off) {
  const Rule rule = rule_with(OnCounterFailure::kLocal, 100, Policy::kCertain);
  const std::vector<SlotCount> counts{{.slot = 8, .known = 90}, {.slot = 9, .known = 0, .unsent = 50}};
  SlotTotals totals{.key = kKey, .rule = 1, .slots = counts, .clock_in_doubt = true};
  EXPECT_FALSE(judge_totals(totals, rule, mitigations_, kNow, kMembers).outcome);
  EXPECT_EQ(metric("popgate_mitigate_withheld_open"), 1);
  totals.clock_in_doubt = false;
  EXPECT_EQ(judge_totals(totals, rule, mitigations_, kNow, kMembers).outcome, DecideOutcome::kDecided);
}

TEST_F(Degraded, local_under_cautious_goes_by_the_share_because_hi_is_unknown) {
  EXPECT_EQ(own_hits_that_pass(rule_with(OnCounterFailure::kLocal, 30, Policy::kCautious), 0), 10U);
  EXPECT_FALSE(entry().evidence.hi.has_value());
}

TEST_F(Degraded, what_local_decides_is_labelled_and_counted_so) {
  const JudgedTotals judged = judge(rule_with(OnCounterFailure::kLocal, 30), {{.slot = 9, .unsent = 11}});
  EXPECT_EQ(judged.outcome, DecideOutcome::kDecided);
  EXPECT_EQ(judged.under, DecidedUnder::kLocal);
  EXPECT_EQ(entry().evidence.under, DecidedUnder::kLocal);
  EXPECT_EQ(entry().evidence.limit, 10U);
  EXPECT_EQ(metric("popgate_mitigate_decided_under", "local"), 1);
  EXPECT_EQ(metric("popgate_mitigate_decided_under", "counters"), 0);
}

TEST_F(Degraded, open_mitigates_nobody_new_and_counts_whom_not) {
  EXPECT_FALSE(judge(rule_with(OnCounterFailure::kOpen, 30), {{.slot = 9, .known = 100, .unsent = 100}}).outcome);
  EXPECT_EQ(mitigations_.find(kKey).automatic, nullptr);
  EXPECT_EQ(metric("popgate_mitigate_withheld_open"), 1);
}

TEST_F(Degraded, open_leaves_what_is_in_force) {
  const Rule rule = rule_with(OnCounterFailure::kOpen, 30);
  const std::vector<SlotCount> counts{{.slot = 9, .known = 31}};
  const SlotTotals before{.key = kKey, .rule = 1, .slots = counts, .fresh = true};
  ASSERT_TRUE(judge_totals(before, rule, mitigations_, kNow, kMembers).outcome);
  const HostInstant until = entry().until;
  judge(rule, {{.slot = 9, .known = 31, .unsent = 5}});
  EXPECT_EQ(entry().until, until);
  EXPECT_EQ(entry().evidence.under, DecidedUnder::kCounters);
}

TEST_F(Degraded, closed_mitigates_at_the_first_hit_for_a_short_time) {
  const Rule rule = rule_with(OnCounterFailure::kClosed, 1000);
  EXPECT_EQ(judge(rule, {{.slot = 9, .unsent = 1}}).outcome, DecideOutcome::kDecided);
  EXPECT_EQ(entry().until, kNow.host + kClosedLasting);
  EXPECT_EQ(entry().evidence.under, DecidedUnder::kClosed);
}

TEST_F(Degraded, closed_does_not_count_hits_that_were_lifted_away) {
  ASSERT_TRUE(mitigations_.lift({kKey, kNow.pop, "mistake"}, kNow.host, kNow.pop).ok());
  const Rule rule = rule_with(OnCounterFailure::kClosed, 1000);
  EXPECT_FALSE(judge(rule, {{.slot = 9, .unsent = 1}}).outcome);
}

class Closed : public Degraded {
 protected:
  Closed() {
    mitigations_.use_rules(rules_, kNow.host);
    judge(rules_->all().front(), {{.slot = 9, .unsent = 1}});
    for (const Mitigation& m : changes_) keys_.decided(m);
    changes_.clear();
  }
  /// Looks every 100 ms, as the daemon does, and hands back what changes.
  void wait(seconds lasting) {
    for (const HostInstant end = now_.host + lasting; now_.host < end;) {
      now_.host += milliseconds(100);
      now_.pop += milliseconds(100);
      keys_.renew(*rules_, now_);
      for (const Mitigation& m : changes_) keys_.decided(m);
      changes_.clear();
    }
  }
  bool in_force() const { return mitigations_.enforcement(kKey, now_.host).has_value(); }

  SharedRules rules_ = std::make_shared<const RuleSet>(std::vector<Rule>{rule_with(OnCounterFailure::kClosed, 1000)});
  bool degraded_ = true;
  BothInstants now_ = kNow;
  ClosedKeys keys_{mitigations_, [this](const Key&) { return degraded_; }};
};

TEST_F(Closed, is_renewed_while_the_state_lasts_and_ends_with_it) {
  wait(seconds(60));
  EXPECT_TRUE(in_force());
  EXPECT_EQ(keys_.count(), 1U);
  degraded_ = false;
  wait(kClosedLasting);
  EXPECT_FALSE(in_force());
  EXPECT_EQ(keys_.count(), 0U);
}

TEST_F(Closed, a_lift_ends_it_for_good) {
  ASSERT_TRUE(mitigations_.lift({kKey, now_.pop, "mistake"}, now_.host, now_.pop).ok());
  wait(seconds(10));
  EXPECT_FALSE(in_force());
}

TEST_F(Closed, what_the_counters_decided_since_is_not_made_shorter) {
  Rule rule = rules_->all().front();
  const Evidence evidence{.lo = 1001, .estimate = 1001, .hi = 1001, .limit = 1000};
  ASSERT_EQ(mitigations_.decide({kKey, rule, evidence, {now_.host + seconds(600), now_.host}}, now_.host, now_.pop),
            DecideOutcome::kRenewed);
  wait(seconds(10));
  EXPECT_EQ(entry().until, kNow.host + seconds(600));
  EXPECT_EQ(entry().evidence.under, DecidedUnder::kCounters);
}

// Whatever a node knows and holds: under `certain` nobody is mitigated whose known and own hits within the window are
// not over the whole limit.
RC_GTEST_PROP(DegradedProperty, certain_is_never_held_against_a_share, ()) {
  const auto limit = static_cast<std::uint64_t>(*rc::gen::inRange(1, 60));
  const Rule rule =
      rule_with(*rc::gen::element(OnCounterFailure::kLocal, OnCounterFailure::kOpen), limit, Policy::kCertain);
  Mitigations mitigations({.node_name = "a", .incarnation = 1}, [](const Mitigation&, const Origin&) {});
  mitigations.allow_originating(0);
  std::vector<SlotCount> counts;
  std::uint64_t inside = 0;  // the slots that begin within the window
  for (SlotIndex slot = 3; slot <= 9; ++slot) {
    const auto hits = [] { return static_cast<std::uint64_t>(*rc::gen::inRange(0, 4)); };
    counts.push_back({.slot = slot, .known = hits(), .unsent = hits(), .hidden = hits()});
    if (slot >= 4) inside += counts.back().known + counts.back().unsent;
  }
  const SlotTotals totals{.key = kKey,
                          .rule = 1,
                          .slots = counts,
                          .fresh = *rc::gen::arbitrary<bool>(),
                          .counters_lost = false,
                          .degraded = true};
  const bool mitigated = judge_totals(totals, rule, mitigations, kNow, 8).outcome.has_value();
  RC_ASSERT(mitigated == (inside > limit && rule.on_counter_failure == OnCounterFailure::kLocal));
}

// A waiting client is admitted, when the shard is still gone and when its totals say the same as before.
RC_GTEST_PROP(DegradedProperty, a_client_that_waits_for_the_end_is_admitted, ()) {
  Rule rule = rule_with(OnCounterFailure::kLocal, static_cast<std::uint64_t>(*rc::gen::inRange(1, 100)),
                        *rc::gen::element(Policy::kEstimate, Policy::kCautious));
  rule.mitigate = milliseconds(*rc::gen::element(0, 100, 5000));
  Mitigations mitigations({.node_name = "a", .incarnation = 1}, [](const Mitigation&, const Origin&) {});
  mitigations.allow_originating(0);
  std::map<SlotIndex, SlotCount> by_slot;
  for (SlotIndex slot = 3; slot <= 9; ++slot) {
    const auto hits = [] { return static_cast<std::uint64_t>(*rc::gen::inRange(0, 12)); };
    by_slot[slot] = {.slot = slot, .known = hits(), .unsent = hits()};
  }
  const auto judged = [&](BothInstants now) {
    std::vector<SlotCount> counts;
    for (const auto& [slot, count] : by_slot) counts.push_back(count);
    const SlotTotals totals{
        .key = kKey, .rule = 1, .slots = counts, .fresh = false, .counters_lost = false, .degraded = true};
    return judge_totals(totals, rule, mitigations, now, kMembers);
  };
  RC_PRE(judged(kNow).outcome.has_value());
  const microseconds wait = mitigations.find(kKey).automatic->until - kNow.host;
  const BothInstants back{kNow.host + wait, kNow.pop + wait};
  const SlotIndex slot = KeySlots(rule.window, kKey).slot_at(back.pop);
  by_slot[slot].slot = slot;
  ++by_slot[slot].unsent;
  RC_ASSERT(!judged(back).outcome.has_value());
}

}  // namespace
}  // namespace popgate
