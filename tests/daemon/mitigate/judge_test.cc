// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge.h"

#include <gtest/gtest.h>

#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

std::optional<Judgement> judge(const Rule& rule, const Rate& rate, microseconds fall, HostInstant now) {
  if (!is_over(rule, rate)) return std::nullopt;
  return judgement_of(rule, fall, now);
}

Rate estimate_of(double estimate) { return {0, estimate, std::nullopt}; }

TEST(Judge, limit_hits_pass_and_the_next_is_over) {
  const Rule rule = sample_rule(7, 100);
  EXPECT_FALSE(judge(rule, estimate_of(100), seconds(1), kHostNow));
  EXPECT_TRUE(judge(rule, estimate_of(100.001), seconds(1), kHostNow));
}

Rule rule_by(Policy policy) {
  Rule rule = sample_rule(7, 100);
  rule.policy = policy;
  return rule;
}

TEST(Judge, certain_acts_on_the_lower_bound_alone) {
  const Rule rule = rule_by(Policy::kCertain);
  EXPECT_FALSE(is_over(rule, {.lo = 100, .estimate = 150, .hi = 200}));
  EXPECT_TRUE(is_over(rule, {.lo = 101, .estimate = 101, .hi = std::nullopt}));
}

TEST(Judge, cautious_acts_on_the_upper_bound_and_on_the_estimate_while_that_is_unknown) {
  const Rule rule = rule_by(Policy::kCautious);
  EXPECT_FALSE(is_over(rule, {.lo = 0, .estimate = 90, .hi = 100}));
  EXPECT_TRUE(is_over(rule, {.lo = 0, .estimate = 90, .hi = 101}));
  EXPECT_FALSE(is_over(rule, {.lo = 0, .estimate = 100, .hi = std::nullopt}));
  EXPECT_TRUE(is_over(rule, {.lo = 0, .estimate = 100.5, .hi = std::nullopt}));
}

TEST(Judge, a_throttle_steers_by_the_estimate_whatever_its_policy) {
  for (const Policy policy : {Policy::kEstimate, Policy::kCertain, Policy::kCautious}) {
    Rule rule = rule_by(policy);
    rule.mitigate = seconds(0);
    EXPECT_EQ(deciding_figure(rule), RateFigure::kEstimate);
    EXPECT_FALSE(is_over(rule, {.lo = 90, .estimate = 100, .hi = 150}));
    EXPECT_TRUE(is_over(rule, {.lo = 90, .estimate = 101, .hi = 150}));
  }
}

TEST(Judge, a_limit_of_zero_is_over_with_the_first_hit) {
  const Rule rule = sample_rule(7, 0);
  EXPECT_FALSE(judge(rule, estimate_of(0), seconds(0), kHostNow));
  EXPECT_TRUE(judge(rule, estimate_of(1), seconds(60), kHostNow));
  EXPECT_EQ(admitting_level(rule), 0);
}

TEST(Judge, lasts_as_long_as_the_rule_says_when_that_is_longer_than_the_fall) {
  const auto judgement = judge(sample_rule(), estimate_of(150), seconds(20), kHostNow);
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->until, kHostNow + minutes(10));
  EXPECT_EQ(judgement->admitted_from, kHostNow + seconds(20));
}

TEST(Judge, lasts_until_a_waiting_client_is_admitted_when_that_is_longer_than_the_rule_says) {
  Rule rule = sample_rule();
  rule.mitigate = seconds(5);
  const auto judgement = judge(rule, estimate_of(150), seconds(20), kHostNow);
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->until, kHostNow + seconds(20));
}

TEST(Judge, throttle_lasts_for_the_fall_alone) {
  Rule rule = sample_rule();
  rule.mitigate = seconds(0);
  const auto judgement = judge(rule, estimate_of(101), milliseconds(1700), kHostNow);
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->until, kHostNow + milliseconds(1700));
}

TEST(Judge, nothing_lasts_longer_than_the_longest_mitigation) {
  Rule rule = sample_rule();
  rule.mitigate = hours(24 * 15);
  const auto by_rule = judge(rule, estimate_of(101), seconds(1), kHostNow);
  ASSERT_TRUE(by_rule);
  EXPECT_EQ(by_rule->until, kHostNow + kMitigationMax);
  const auto by_fall = judge(rule, estimate_of(101), hours(24 * 15), kHostNow);
  ASSERT_TRUE(by_fall);
  EXPECT_EQ(by_fall->admitted_from, kHostNow + kMitigationMax);
}

TEST(Judge, a_rate_falls_to_one_below_the_limit_so_that_one_more_hit_fits) {
  EXPECT_EQ(admitting_level(sample_rule(7, 100)), 99);
  EXPECT_EQ(admitting_level(sample_rule(7, 1)), 0);
}

TEST(Judge, a_request_of_a_higher_cost_needs_that_much_room) {
  Rule rule = sample_rule(7, 100);
  rule.cost = 10;
  EXPECT_EQ(admitting_level(rule), 90);
}

// The denied request that was told the time counts too.
TEST(Judge, when_denied_requests_count_the_waiting_client_needs_room_for_two) {
  Rule rule = sample_rule(7, 100);
  rule.count = CountMode::kAll;
  EXPECT_EQ(admitting_level(rule), 98);
  rule.cost = 60;
  EXPECT_EQ(admitting_level(rule), 0);
}

}  // namespace
}  // namespace popgate
