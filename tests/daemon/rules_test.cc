// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules.h"

#include <gtest/gtest.h>

#include <functional>

namespace popgate {
namespace {

Rule sample() {
  Rule rule;
  rule.name = "login";
  rule.match.host_match = HostMatch::kExact;
  rule.match.host = "example.com";
  rule.match.path_match = PathMatch::kPrefix;
  rule.match.path = "/login";
  rule.match.methods = {"POST"};
  rule.key = {{KeyPart::kClientIp, "", 24, 56}, {KeyPart::kHeader, "x-api-key"}};
  rule.limit = 10;
  rule.window = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));
  rule.mitigate = std::chrono::minutes(5);
  identify(rule);
  return rule;
}

using Change = std::function<void(Rule&)>;

Rule changed(const Change& change) {
  Rule rule = sample();
  change(rule);
  identify(rule);
  return rule;
}

TEST(RuleIdentity, what_is_counted_belongs_to_the_counters) {
  const Change changes[] = {[](Rule& rule) { rule.name = "other"; },
                            [](Rule& rule) { rule.match.host_match = HostMatch::kSuffix; },
                            [](Rule& rule) { rule.match.host = "example.org"; },
                            [](Rule& rule) { rule.match.path_match = PathMatch::kExact; },
                            [](Rule& rule) { rule.match.path = "/logout"; },
                            [](Rule& rule) {
                              rule.match.methods = {"POST", "PUT"};
                            },
                            [](Rule& rule) { rule.key[0].v4_prefix = 32; },
                            [](Rule& rule) { rule.key[0].v6_prefix = 64; },
                            [](Rule& rule) { rule.key[1].name = "x-other"; },
                            [](Rule& rule) { rule.key[1].type = KeyPart::kCookie; },
                            [](Rule& rule) { std::swap(rule.key[0], rule.key[1]); },
                            [](Rule& rule) { rule.key.pop_back(); },
                            [](Rule& rule) { rule.window.slots = 5; },
                            [](Rule& rule) { rule.window.window = std::chrono::seconds(61); }};
  int index = 0;
  for (const Change& change : changes) {
    EXPECT_NE(changed(change).counter_identity, sample().counter_identity) << index;
    EXPECT_NE(changed(change).revision, sample().revision) << index++;
  }
}

TEST(RuleIdentity, counters_survive_a_change_of_what_follows_from_them_but_the_revision_changes) {
  const Change changes[] = {[](Rule& rule) { rule.limit = 11; },
                            [](Rule& rule) { rule.mitigate = std::chrono::minutes(6); },
                            [](Rule& rule) { rule.action = Action::kLog; },
                            [](Rule& rule) { rule.count = CountMode::kAll; },
                            [](Rule& rule) { rule.cost = 2; },
                            [](Rule& rule) { rule.enabled = false; }};
  int index = 0;
  for (const Change& change : changes) {
    EXPECT_EQ(changed(change).counter_identity, sample().counter_identity) << index;
    EXPECT_EQ(changed(change).id, sample().id) << index;
    EXPECT_NE(changed(change).revision, sample().revision) << index++;
  }
}

TEST(RuleIdentity, number_and_clock_tolerance_are_this_nodes_own) {
  const Rule rule = changed([](Rule& r) {
    r.number = 7;
    r.window.tolerance = milliseconds(5);
    r.key[1].v4_prefix = 1;  // means nothing to a header
  });
  EXPECT_EQ(rule.counter_identity, sample().counter_identity);
  EXPECT_EQ(rule.revision, sample().revision);
}

// Fields that run together would let one rule take another's counters.
TEST(RuleIdentity, neighbouring_texts_do_not_run_together) {
  const auto with = [](const std::string& host, const std::string& path) {
    return changed([&](Rule& rule) {
      rule.match.host = host;
      rule.match.path = path;
    });
  };
  EXPECT_NE(with("ab", "c").counter_identity, with("a", "bc").counter_identity);
}

// Computed once by hand from libsodium's SipHash over the canonical bytes: nodes of different releases must agree.
TEST(RuleIdentity, the_id_of_a_name_never_changes) {
  KeyBuilder builder(HashSecret{}, 0);
  builder.add(KeyPart::kCustom, "rule name", std::string("\0\0\0\0\0\0\0\5login", 13));
  EXPECT_EQ(rule_id("login"), builder.finish().lo);
}

std::vector<Rule> two_rules() {
  Rule a = sample();
  Rule b = sample();
  b.name = "api";
  b.number = 9;
  identify(b);
  return {a, b};
}

TEST(RuleSet, finds_rules_by_number_id_and_name) {
  const RuleSet rules(two_rules());
  EXPECT_EQ(rules.by_number(9)->name, "api");
  EXPECT_EQ(rules.by_number(1), nullptr);
  EXPECT_EQ(rules.by_id(rule_id("login"))->name, "login");
  EXPECT_EQ(rules.by_name("api")->number, 9U);
  EXPECT_EQ(rules.by_name("none"), nullptr);
  EXPECT_EQ(rules.by_id(0), nullptr);
}

TEST(RuleSet, its_revision_changes_with_any_rule_and_with_their_order) {
  const std::vector<Rule> rules = two_rules();
  EXPECT_EQ(RuleSet(rules).revision(), RuleSet(two_rules()).revision());
  EXPECT_NE(RuleSet(rules).revision(), RuleSet({rules[1], rules[0]}).revision());
  EXPECT_NE(RuleSet(rules).revision(), RuleSet({rules[0]}).revision());
  EXPECT_EQ(RuleSet().revision(), RuleSet(std::vector<Rule>{}).revision());
}

TEST(KeyOfValues, needs_a_value_for_each_part_that_fits_it) {
  const Rule rule = sample();
  Key key;
  std::string reason;
  EXPECT_TRUE(key_of_values(rule, HashSecret{}, {"192.0.2.1", "k"}, key, reason));
  EXPECT_FALSE(key_of_values(rule, HashSecret{}, {"192.0.2.1"}, key, reason));
  EXPECT_EQ(reason, "the key of rule login has 2 parts, not 1");
  EXPECT_FALSE(key_of_values(rule, HashSecret{}, {"k", "192.0.2.1"}, key, reason));
  EXPECT_EQ(reason, "\"k\" is not an IPv4 or IPv6 address");
}

TEST(KeyOfValues, missing_and_empty_differ_and_addresses_are_cut_to_their_prefix) {
  const Rule rule = sample();
  const auto key = [&](std::string client, std::string header) {
    Key result;
    std::string reason;
    EXPECT_TRUE(key_of_values(rule, HashSecret{}, {std::move(client), std::move(header)}, result, reason)) << reason;
    return result;
  };
  EXPECT_NE(key("192.0.2.1", "-"), key("192.0.2.1", ""));
  EXPECT_NE(key("-", "k"), key("192.0.2.1", "k"));
  EXPECT_EQ(key("192.0.2.1", "k"), key("::ffff:192.0.2.99", "k"));
  EXPECT_NE(key("192.0.2.1", "k"), key("192.0.3.1", "k"));
  Key empty_address;
  std::string reason;
  EXPECT_FALSE(key_of_values(rule, HashSecret{}, {"", "k"}, empty_address, reason));
  EXPECT_EQ(reason, "found an empty value, allowed: a value, or - for a request without one");
}

// 2,592,000 s are 30 days; W + W/k + 2D, rounded up to seconds, + 10 s for the flush + 1 s for memcached's clock.
TEST(CounterExpiry, outlives_the_slots_last_reader) {
  EXPECT_EQ(counter_expiry(WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20))), std::chrono::seconds(82));
  EXPECT_EQ(counter_expiry(WindowShape::make(std::chrono::seconds(1), 1, milliseconds(5))), std::chrono::seconds(14));
}

}  // namespace
}  // namespace popgate
