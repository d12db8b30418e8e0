// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/applied.h"

#include <gtest/gtest.h>

#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

// Decided five minutes ago under limit 100 for ten minutes, at an estimate of 150.
Mitigation decided_under(const Rule& rule) {
  Mitigation m;
  m.key = kClient;
  m.rule = rule.id;
  m.rule_revision = rule.revision;
  m.until = kHostNow + minutes(5);
  m.decided_at = kWallNow - minutes(5);
  m.until_wall = kWallNow + minutes(5);
  m.evidence = sample_evidence(150);
  return m;
}

TEST(AppliedRules, the_same_revision_is_enforced_as_decided) {
  const Rule rule = sample_rule();
  const auto rules = sample_rules({rule});
  const auto applied = apply_rules(decided_under(rule), rules.get());
  ASSERT_TRUE(applied);
  EXPECT_EQ(*applied, (Applied{rule.number, kHostNow + minutes(5), false}));
}

TEST(AppliedRules, an_unknown_a_deleted_and_a_disabled_rule_enforce_nothing) {
  Rule rule = sample_rule();
  const Mitigation m = decided_under(rule);
  EXPECT_FALSE(apply_rules(m, nullptr));
  EXPECT_FALSE(apply_rules(m, sample_rules({sample_rule(8)}).get()));
  rule.enabled = false;
  EXPECT_FALSE(apply_rules(m, sample_rules({rule}).get()));
}

TEST(AppliedRules, a_limit_raised_to_the_evidence_frees_the_client) {
  const Mitigation m = decided_under(sample_rule(7, 100));
  EXPECT_FALSE(apply_rules(m, sample_rules({sample_rule(7, 150)}).get()));
  EXPECT_TRUE(apply_rules(m, sample_rules({sample_rule(7, 149)}).get()));
}

TEST(AppliedRules, a_rule_that_became_certain_frees_whom_only_the_estimate_was_against) {
  const Rule rule = sample_rule();
  Mitigation m = decided_under(rule);
  m.evidence = {.lo = 100, .estimate = 150, .hi = 160, .limit = 100};
  Rule certain = rule;
  certain.policy = Policy::kCertain;
  certain.revision = 2;
  EXPECT_FALSE(apply_rules(m, sample_rules({certain}).get()));
  m.evidence.lo = 101;
  EXPECT_TRUE(apply_rules(m, sample_rules({certain}).get()));
}

TEST(AppliedRules, a_shorter_duration_counts_from_the_decision) {
  Rule rule = sample_rule();
  const Mitigation m = decided_under(rule);
  rule.revision = 2;
  rule.mitigate = minutes(7);
  const auto applied = apply_rules(m, sample_rules({rule}).get());
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->until, kHostNow + minutes(2));
}

TEST(AppliedRules, a_longer_duration_does_not_lengthen_what_was_decided) {
  Rule rule = sample_rule();
  const Mitigation m = decided_under(rule);
  rule.revision = 2;
  rule.mitigate = hours(10);
  EXPECT_EQ(apply_rules(m, sample_rules({rule}).get())->until, m.until);
}

TEST(AppliedRules, a_rule_that_became_a_throttle_ends_one_window_after_the_decision) {
  Rule rule = sample_rule();
  const Mitigation m = decided_under(rule);
  rule.revision = 2;
  rule.mitigate = seconds(0);
  EXPECT_EQ(apply_rules(m, sample_rules({rule}).get())->until, kHostNow - minutes(5) + minutes(1));
}

TEST(AppliedRules, a_wrong_wall_clock_of_the_decider_cannot_lengthen_a_rejudged_block) {
  Rule rule = sample_rule();
  Mitigation m = decided_under(rule);
  m.decided_at += hours(100);  // later than its own end
  rule.revision = 2;
  rule.mitigate = minutes(7);
  EXPECT_EQ(apply_rules(m, sample_rules({rule}).get())->until, m.until);
}

TEST(AppliedRules, a_rule_that_only_logs_marks_the_entry_so) {
  Rule rule = sample_rule();
  rule.action = Action::kLog;
  const auto applied = apply_rules(decided_under(rule), sample_rules({rule}).get());
  ASSERT_TRUE(applied);
  EXPECT_TRUE(applied->log_only);
}

}  // namespace
}  // namespace popgate
