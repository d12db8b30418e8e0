// SPDX-License-Identifier: Apache-2.0
//
// Small replays whose outcome can be worked out with a pencil, and properties that hold for any.
#include "replay/replayer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "replay/log_client.h"
#include "replay/traffic.h"
#include "tests/replay/rules_of.h"

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(double s) { return PopInstant(seconds(1'000'000'000)) + microseconds(std::llround(s * 1e6)); }

LoggedRequest request_at(double time, const std::string& client = "192.0.2.1") {
  LoggedRequest views;
  views.time = at(time);
  views.method = "GET";
  views.path = "/";
  views.client_text = client;
  views.client = client_address_of(client);
  return LoggedRequest::owning(views);
}

ReplayOptions options_for(Rule rule) {
  identify(rule);
  ReplayOptions options;
  options.rules = {std::move(rule)};
  return options;
}

Report replay(const ReplayOptions& options, const std::vector<double>& times) {
  Replayer replayer(options);
  for (const double time : times) replayer.request(request_at(time));
  return replayer.finish();
}

std::vector<double> every(double step, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(step * i);
  return times;
}

TEST(Replayer, hit_over_the_limit_is_decided_at_the_next_flush_and_enforced_everywhere_a_mesh_delay_later) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  options.mesh_delay = milliseconds(7);
  const Report report = replay(options, every(1, 10));  // three pass, the fourth crosses, six are blocked
  EXPECT_EQ(report.requests, 10u);
  EXPECT_EQ(report.hits, 4u);
  EXPECT_EQ(report.blocked, 6u);
  EXPECT_EQ(report.wrongly_blocked, 0u);
  EXPECT_EQ(report.wrongly_passed, 1u);
  EXPECT_EQ(report.rules[0].mitigations, 1u);
  EXPECT_EQ(report.rules[0].false_mitigations, 0u);
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 1);
  EXPECT_GT(report.time_to_decision_s.maximum(), 0.001);  // a round trip after the flush
  EXPECT_LE(report.time_to_decision_s.maximum(), 0.051);
  EXPECT_NEAR(report.time_to_enforced_s.maximum(), report.time_to_decision_s.maximum() + 0.007, 1e-9);
  EXPECT_EQ(report.crossings_not_enforced_everywhere, 0u);
  EXPECT_EQ(report.ideal_blocked, 7u);
}

TEST(Replayer, overshoot_is_what_comes_in_flush_interval_and_round_trip) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  options.round_trip = seconds(1);
  options.mesh_delay = microseconds(0);
  // Decided between 1.00 s and 1.05 s after the crossing at 0.3 s: what comes up to 1.3 s passes, that is 11 above.
  const Report report = replay(options, every(0.1, 50));
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 11);
  EXPECT_EQ(report.hits, 14u);
  EXPECT_EQ(report.blocked, 36u);
}

TEST(Replayer, other_nodes_let_pass_until_the_mesh_has_told_them) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  options.nodes = 2;
  options.mesh_delay = seconds(10);
  // By turns: node 2 sees the fourth request and decides; node 1 only judges again when the fifth comes to it.
  const Report report = replay(options, every(1, 8));
  EXPECT_EQ(report.hits, 5u) << "the fourth crosses at node 2, the fifth at node 1 before it has judged again";
  EXPECT_EQ(report.rules[0].mitigations, 1u);
  EXPECT_EQ(report.blocked, 3u);
}

TEST(Replayer, client_is_blocked_for_the_time_of_the_rule_and_then_admitted) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(10), seconds(20)));
  options.nodes = 1;
  std::vector<double> times = every(1, 4);  // decided between 3.0 s and 3.1 s
  for (const double time : {10.0, 22.9, 23.2, 24.0}) times.push_back(time);
  const Report report = replay(options, times);
  EXPECT_EQ(report.blocked, 2u);
  EXPECT_EQ(report.hits, 6u);
  EXPECT_EQ(report.rules[0].mitigations, 1u);
}

TEST(Replayer, limit_that_is_met_but_not_exceeded_blocks_nobody) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  const Report report = replay(options, every(1, 3));
  EXPECT_EQ(report.blocked, 0u);
  EXPECT_EQ(report.rules[0].mitigations, 0u);
}

TEST(Replayer, log_rule_blocks_nobody_and_is_judged_all_the_same) {
  Rule rule = client_rule("r", 0, 3, seconds(60), seconds(300));
  rule.action = Action::kLog;
  const Report report = replay(options_for(rule), every(1, 10));
  EXPECT_EQ(report.blocked, 0u);
  EXPECT_EQ(report.hits, 10u);
  EXPECT_EQ(report.rules[0].blocked, 6u);
  EXPECT_EQ(report.rules[0].mitigations, 1u);
}

TEST(Replayer, rule_that_counts_all_counts_what_it_blocks) {
  Rule rule = client_rule("r", 0, 3, seconds(60), seconds(300));
  rule.count = CountMode::kAll;
  const Report report = replay(options_for(rule), every(1, 10));
  EXPECT_EQ(report.blocked, 6u);
  EXPECT_EQ(report.hits, 10u);
}

TEST(Replayer, spread_by_client_shows_each_client_one_node) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  options.spread = Spread::kByClient;
  const Report report = replay(options, every(1, 10));
  int nodes_with_blocks = 0;
  for (const std::uint64_t blocked : report.requests_blocked_by_node) nodes_with_blocks += blocked > 0 ? 1 : 0;
  EXPECT_EQ(nodes_with_blocks, 1);
  EXPECT_EQ(report.blocked, 6u);
}

TEST(NodeChooser, turns_are_even_random_follows_the_seed_and_a_client_stays) {
  NodeChooser turns(Spread::kRoundRobin, 3, 1);
  for (unsigned i = 0; i < 9; ++i) EXPECT_EQ(turns.choose(i), i % 3);
  NodeChooser one(Spread::kRandom, 3, 7);
  NodeChooser same(Spread::kRandom, 3, 7);
  std::array<int, 3> chosen{};
  for (unsigned i = 0; i < 300; ++i) {
    const unsigned node = one.choose(i);
    EXPECT_EQ(same.choose(i), node);
    ++chosen.at(node);
  }
  for (const int count : chosen) EXPECT_GT(count, 60);
  NodeChooser by_client(Spread::kByClient, 3, 1);
  const unsigned node = by_client.choose(12345);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(by_client.choose(12345), node);
}

TEST(Replayer, years_of_silence_cost_no_events) {
  ReplayOptions options = options_for(client_rule("r", 0, 3, seconds(60), seconds(300)));
  const Report report = replay(options, {0, 1e8, 2e8, 3e8});
  EXPECT_EQ(report.hits, 4u);
  EXPECT_EQ(report.judgements, 4u);
}

std::string traffic_report(std::uint64_t seed) {
  ReplayOptions options = options_for(client_rule("r", 0, 100, seconds(10), seconds(20)));
  options.seed = seed;
  options.spread = Spread::kRandom;
  TrafficOptions traffic_options;
  traffic_options.duration = seconds(15);
  Traffic traffic(traffic_options);
  Replayer replayer(options);
  LoggedRequest request;
  while (traffic.next(request)) replayer.request(request);
  return report_json(replayer.finish());
}

TEST(Replayer, same_seed_gives_the_same_report_to_the_byte_and_another_seed_another) {
  const std::string report = traffic_report(1);
  EXPECT_EQ(traffic_report(1), report);
  EXPECT_NE(traffic_report(2), report);
}

// Whatever the delays, the rule and the traffic: the lower bound holds, every hit is accounted, and nobody is blocked
// who never came near the limit.
RC_GTEST_PROP(ReplayerProperty, lower_bound_holds_and_every_hit_is_accounted, ()) {
  const auto limit = static_cast<std::uint64_t>(*rc::gen::inRange(1, 20));
  Rule rule =
      client_rule("r", 0, limit, milliseconds(*rc::gen::inRange(500, 5000)), milliseconds(*rc::gen::inRange(0, 3000)));
  rule.window = WindowShape::make(rule.window.window, static_cast<unsigned>(*rc::gen::inRange(1, 12)), microseconds(0));
  rule.count = *rc::gen::element(CountMode::kAllowed, CountMode::kAll);
  rule.cost = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
  ReplayOptions options = options_for(rule);
  options.nodes = static_cast<unsigned>(*rc::gen::inRange(1, 5));
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.spread = *rc::gen::element(Spread::kRoundRobin, Spread::kRandom);
  options.flush_interval = milliseconds(*rc::gen::inRange(1, 200));
  options.round_trip = milliseconds(*rc::gen::inRange(0, 300));
  options.mesh_delay = milliseconds(*rc::gen::inRange(0, 300));
  Replayer replayer(options);
  double now = 0;
  for (const int gap : *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(0, 300))) {
    now += gap / 1000.0;
    replayer.request(request_at(now, "192.0.2." + std::to_string(gap % 3)));
  }
  const Report report = replayer.finish();
  RC_ASSERT(report.lo_above_exact == 0u);
  RC_ASSERT(report.ledger.recorded == report.hits);
  RC_ASSERT(report.ledger.delivered + report.ledger.dropped + report.ledger.expired == report.ledger.recorded);
  RC_ASSERT(report.ledger.dropped == 0u);
  if (report.rules[0].mitigations == 0) RC_ASSERT(report.blocked == 0u);
}

}  // namespace
}  // namespace popgate
