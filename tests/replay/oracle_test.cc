// SPDX-License-Identifier: Apache-2.0
//
// Every case is small enough to be followed with a pencil; the figures are those of the pencil.
#include "replay/oracle.h"

#include <gtest/gtest.h>

#include <cmath>

#include "replay/distribution.h"
#include "tests/replay/rules_of.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr microseconds kLag = milliseconds(100);

PopInstant at(double s) { return PopInstant(microseconds(std::llround(s * 1e6))); }
Key key_of(std::uint64_t client) { return {client, client}; }

// Rule 1: 3 in 10 s, then 60 s of mitigation.
SharedRules three_in_ten() { return rules_of({client_rule("r", 1, 3, seconds(10), seconds(60))}); }

class Case {
 public:
  explicit Case(SharedRules rules, unsigned nodes = 1) : oracle(std::move(rules), nodes, kLag) {}
  void passes(double time, std::uint64_t client = 1, unsigned node = 0) { send(time, client, node, 0); }
  void is_blocked(double time, std::uint64_t client = 1, unsigned node = 0) { send(time, client, node, 1); }
  void decided(double time, double until, std::uint64_t client = 1) {
    oracle.decided({key_of(client), 1, at(time), at(until)}, nullptr);
  }
  void send(double time, std::uint64_t client, unsigned node, std::uint32_t enforced) {
    const Match match{1, key_of(client)};
    oracle.request({at(time), node, client, {&match, 1}, enforced});
  }
  Oracle oracle;
};

TEST(Oracle, overshoot_is_what_passes_above_the_limit_until_the_block) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0, 4.0}) one.passes(t);  // 3 s is the crossing; 3 s and 4 s are over
  one.decided(4.1, 64.1);
  one.oracle.enforced(0, key_of(1), at(4.2));
  one.is_blocked(5);
  const Report report = one.oracle.finish();
  const RuleReport& rule = report.rules[0];
  EXPECT_EQ(report.requests, 6u);
  EXPECT_EQ(report.hits, 5u) << "what is blocked is not counted";
  EXPECT_EQ(rule.crossings, 1u);
  EXPECT_EQ(rule.missed_crossings, 0u);
  EXPECT_EQ(rule.overshoot.maximum(), 2);
  EXPECT_EQ(rule.wrongly_passed, 2u);
  EXPECT_EQ(report.wrongly_passed, 2u);
  EXPECT_EQ(rule.mitigations, 1u);
  EXPECT_EQ(rule.false_mitigations, 0u);
  EXPECT_EQ(report.blocked, 1u);
  EXPECT_EQ(report.wrongly_blocked, 0u);
  EXPECT_DOUBLE_EQ(report.time_to_decision_s.maximum(), 1.1);
  EXPECT_DOUBLE_EQ(report.time_to_enforced_s.maximum(), 1.2);
  EXPECT_DOUBLE_EQ(report.wrong_share(), 2.0 / 6);
  EXPECT_EQ(report.crossings_not_enforced_everywhere, 0u);
}

TEST(Oracle, mitigation_at_exactly_the_limit_is_false_and_wrong_until_a_request_would_have_gone_over) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0}) one.passes(t);
  one.decided(2.1, 62.1);
  one.is_blocked(12.5);  // alone in its window, had it passed
  one.is_blocked(13);
  one.is_blocked(14);
  one.is_blocked(15);  // the fourth in ten seconds: due to be blocked, and with it what follows
  one.is_blocked(40);
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.rules[0].mitigations, 1u);
  EXPECT_EQ(report.rules[0].false_mitigations, 1u);
  EXPECT_EQ(report.rules[0].crossings, 0u);
  EXPECT_EQ(report.blocked, 5u);
  EXPECT_EQ(report.wrongly_blocked, 3u);
  EXPECT_EQ(report.rules[0].keys_over, 0u);
  EXPECT_EQ(report.rules[0].keys_mitigated, 1u);
}

TEST(Oracle, decision_within_the_lag_after_the_crossing_is_true_and_later_it_is_false) {
  for (const bool in_time : {true, false}) {
    Case one(three_in_ten());
    for (const double t : {0.0, 1.0, 2.0, 9.95}) one.passes(t);  // above the limit in [9.95 s, 10 s)
    one.decided(in_time ? 10.05 : 10.15, 70);
    EXPECT_EQ(one.oracle.finish().rules[0].false_mitigations, in_time ? 0u : 1u);
  }
}

TEST(Oracle, what_the_mitigation_before_was_for_does_not_make_another_one_true) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);  // above the limit in [3 s, 10 s)
  one.decided(3.05, 10.02);
  one.decided(10.05, 20);  // within the lag of 10 s, but the first mitigation lasted until 10.02 s
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.rules[0].mitigations, 2u);
  EXPECT_EQ(report.rules[0].false_mitigations, 1u);
}

TEST(Oracle, decision_of_a_second_node_on_a_mitigated_key_is_no_second_mitigation) {
  Case one(three_in_ten(), 2);
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.decided(3.1, 63.1);
  one.decided(3.12, 63.12);
  one.decided(70, 130);  // after the end of both: a new one, and false
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.rules[0].mitigations, 2u);
  EXPECT_EQ(report.rules[0].false_mitigations, 1u);
  EXPECT_EQ(report.rules[0].keys_mitigated, 1u);
}

TEST(Oracle, crossing_without_a_decision_is_missed) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.passes(30);  // back within the limit
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.rules[0].crossings, 1u);
  EXPECT_EQ(report.rules[0].missed_crossings, 1u);
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 1);
}

TEST(Oracle, time_to_enforced_waits_for_the_last_node) {
  Case one(three_in_ten(), 3);
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.decided(3.1, 63);
  one.oracle.enforced(0, key_of(1), at(3.1));
  one.oracle.enforced(2, key_of(1), at(3.3));
  one.passes(3.4, 1, 1);  // node 1 does not know yet: the crossing goes on
  one.oracle.enforced(1, key_of(1), at(3.5));
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.time_to_enforced_s.count(), 1u);
  EXPECT_DOUBLE_EQ(report.time_to_enforced_s.maximum(), 0.5);
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 2);
}

TEST(Oracle, crossing_that_one_node_never_enforces_is_shown) {
  Case one(three_in_ten(), 2);
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.decided(3.1, 63);
  one.oracle.enforced(0, key_of(1), at(3.1));
  EXPECT_EQ(one.oracle.finish().crossings_not_enforced_everywhere, 1u);
}

TEST(Oracle, rule_that_counts_all_counts_what_is_blocked) {
  Rule rule = client_rule("r", 1, 3, seconds(10), seconds(60));
  rule.count = CountMode::kAll;
  Case one(rules_of({rule}));
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.decided(3.1, 63.1);
  one.is_blocked(4);
  EXPECT_EQ(one.oracle.exact(key_of(1), at(4)), 5u);
  EXPECT_EQ(one.oracle.finish().hits, 5u);
}

TEST(Oracle, cost_counts_and_overshoot_is_only_the_part_above) {
  Rule rule = client_rule("r", 1, 10, seconds(10), seconds(60));
  rule.cost = 4;
  Case one(rules_of({rule}));
  for (const double t : {0.0, 1.0, 2.0}) one.passes(t);  // 12: two above
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.hits, 12u);
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 2);
  EXPECT_EQ(report.wrongly_passed, 1u);
}

TEST(Oracle, throttle_is_wrong_where_the_request_would_have_stayed_within_the_limit) {
  Case one(rules_of({client_rule("r", 1, 3, seconds(10), seconds(0))}));
  for (const double t : {0.0, 1.0, 2.0}) one.passes(t);
  one.is_blocked(3);     // would be the fourth
  one.is_blocked(9.9);   // the same
  one.is_blocked(10.1);  // the hit of 0 s has left: wrong
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.blocked, 3u);
  EXPECT_EQ(report.wrongly_blocked, 1u);
}

TEST(Oracle, request_blocked_by_a_true_and_a_false_mitigation_is_rightly_blocked) {
  Case one(
      rules_of({client_rule("a", 1, 9, seconds(10), seconds(60)), client_rule("b", 2, 1, seconds(10), seconds(60))}));
  const Match both[] = {{1, {1, 1}}, {2, {2, 2}}};
  for (const double t : {0.0, 1.0}) one.oracle.request({at(t), 0, 1, both, 0});  // over for b, not for a
  one.oracle.decided({{1, 1}, 1, at(1.01), at(61)}, nullptr);
  one.oracle.decided({{2, 2}, 2, at(1.02), at(61)}, nullptr);
  one.oracle.request({at(2), 0, 1, both, 3});
  one.oracle.request({at(3), 0, 1, both, 1});
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.blocked, 2u);
  EXPECT_EQ(report.wrongly_blocked, 1u) << "only the one that a alone blocked";
  EXPECT_EQ(report.rules[0].wrongly_blocked, 2u);
  EXPECT_EQ(report.rules[1].wrongly_blocked, 0u);
}

TEST(Oracle, log_rule_counts_on_while_it_would_block) {
  Rule rule = client_rule("r", 1, 1, seconds(10), seconds(60));
  rule.action = Action::kLog;
  Case one(rules_of({rule}));
  one.passes(0);
  one.passes(1);
  one.decided(1.05, 61);
  one.is_blocked(2);  // found the mitigation; the request itself passes
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.blocked, 0u);
  EXPECT_EQ(report.rules[0].blocked, 1u);
  EXPECT_EQ(report.hits, 3u);
  EXPECT_EQ(report.wrongly_passed, 1u) << "the one before the mitigation";
}

TEST(Oracle, estimate_is_compared_with_the_exact_count_and_lo_must_not_be_above_it) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.oracle.judged(key_of(1), 1, at(3), {.lo = 4, .estimate = 5, .hi = 6});
  one.oracle.judged(key_of(1), 1, at(10), {.lo = 4, .estimate = 3, .hi = 6});  // exact 3
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.judgements, 2u);
  EXPECT_EQ(report.lo_above_exact, 1u);
  EXPECT_DOUBLE_EQ(report.estimate_error_at_judgements.mean(), 0.125);
}

TEST(Oracle, ideal_limiter_goes_by_its_own_history) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0, 4.0}) one.passes(t);  // ideal: 3 s and 4 s blocked, until 63 s
  one.decided(4.1, 64.1);
  one.is_blocked(5);     // both block
  one.is_blocked(63.5);  // only the system, which decided later
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.ideal_blocked, 3u);
  EXPECT_EQ(report.passed_but_ideal_blocks, 2u);
  EXPECT_EQ(report.blocked_but_ideal_passes, 1u);
  EXPECT_EQ(report.wrongly_blocked, 0u);
  EXPECT_DOUBLE_EQ(report.ideal_difference_share(), 3.0 / 7);
}

// Seen from outside: Retry-After says whole seconds, and a mitigation may be renewed after it was first seen.
TEST(Oracle, block_that_is_seen_beyond_the_first_retry_after_is_the_same_mitigation_while_it_was_renewed) {
  Case one(three_in_ten());
  for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
  one.oracle.seen_enforced(0, {key_of(1), 1, at(3.1), at(8.1)});
  one.oracle.seen_enforced(0, {key_of(1), 1, at(7), at(16)});
  one.oracle.seen_enforced(0, {key_of(1), 1, at(15), at(16)});
  EXPECT_EQ(one.oracle.finish().rules[0].mitigations, 1u);
}

TEST(Oracle, mitigation_has_ended_when_a_request_passes_in_its_last_second) {
  for (const bool seen : {true, false}) {
    Case one(three_in_ten());
    for (const double t : {0.0, 1.0, 2.0, 3.0}) one.passes(t);
    one.oracle.seen_enforced(0, {key_of(1), 1, at(3.1), at(20)});
    if (seen) one.oracle.seen_passing(key_of(1), at(19.1), seconds(1));
    one.oracle.seen_passing(key_of(1), at(18.9), milliseconds(1));  // too early to mean the end: another rule's pass
    for (const double t : {19.1, 19.2, 19.3, 19.4}) one.passes(t);
    one.oracle.seen_enforced(0, {key_of(1), 1, at(19.5), at(40)});
    const Report report = one.oracle.finish();
    EXPECT_EQ(report.rules[0].mitigations, seen ? 2u : 1u);
    EXPECT_EQ(report.rules[0].crossings, seen ? 2u : 1u);
    EXPECT_EQ(report.rules[0].false_mitigations, 0u);
  }
}

TEST(Oracle, clients_are_counted_once_and_node_by_node) {
  Case one(three_in_ten(), 2);
  for (const double t : {0.0, 0.1, 0.2, 0.3}) one.passes(t, 1);
  one.passes(0.4, 2);
  one.decided(0.5, 60);
  one.is_blocked(1, 1, 0);
  one.is_blocked(2, 1, 1);
  one.is_blocked(3, 1, 1);
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.clients, 2u);
  EXPECT_EQ(report.clients_blocked, 1u);
  EXPECT_EQ(report.clients_blocked_by_node, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(report.requests_blocked_by_node, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(report.rules[0].keys, 2u);
}

TEST(Oracle, keys_that_were_swept_out_do_not_count_twice) {
  Case one(rules_of({client_rule("r", 1, 3, milliseconds(1), seconds(0))}));
  constexpr std::uint64_t kClients = 100'000;
  for (std::uint64_t round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < kClients; ++i) {
      one.passes(static_cast<double>(round * kClients + i) * 0.001, i + 1);
    }
  }
  const Report report = one.oracle.finish();
  EXPECT_EQ(report.rules[0].keys, kClients);
  EXPECT_EQ(report.clients, kClients);
}

TEST(Distribution, quantiles_are_measured_values_by_nearest_rank) {
  Distribution measured;
  for (int i = 100; i >= 1; --i) measured.add(i);
  EXPECT_EQ(measured.quantile(0.5), 50);
  EXPECT_EQ(measured.quantile(0.99), 99);
  EXPECT_EQ(measured.quantile(1), 100);
  EXPECT_EQ(measured.quantile(0), 1);
  EXPECT_EQ(measured.mean(), 50.5);
  EXPECT_EQ(Distribution().quantile(0.5), 0);
}

}  // namespace
}  // namespace popgate
