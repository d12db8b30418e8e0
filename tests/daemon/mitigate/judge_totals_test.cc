// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge_totals.h"

#include <gtest/gtest.h>

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

TEST_F(JudgeTotals, hits_before_a_lift_no_longer_count) {
  judge({{.slot = 9, .known = 101}}, 100);
  ASSERT_TRUE(mitigations_.lift({kKey, kNow.pop, "mistake"}, kNow.host, kNow.pop).ok());
  // A second later the same counters, and 100 more hits in the next slot: not over.
  const BothInstants later{kNow.host + seconds(4), kNow.pop + seconds(4)};
  EXPECT_FALSE(judge({{.slot = 9, .known = 101}, {.slot = 10, .known = 100}}, 100, later).outcome.has_value());
  EXPECT_EQ(judge({{.slot = 9, .known = 101}, {.slot = 10, .known = 101}}, 100, later).outcome,
            DecideOutcome::kDecided);
}

}  // namespace
}  // namespace popgate
