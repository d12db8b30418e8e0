// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/brakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libclient/check/table_format.h"

namespace popgate {
namespace {

using std::chrono::seconds;

const PopInstant kWall{seconds(1'700'000'000)};
constexpr std::uint64_t kWallStamp = 1'700'000'000'000'000;

Rule rule_numbered(const std::string& name, RuleNumber number) {
  Rule rule;
  rule.name = name;
  rule.id = rule_id(name);
  rule.number = number;
  return rule;
}

struct Told {
  BrakeSide side;
  std::vector<Brake> brakes;
  NodeId from;
};

class BrakesTest : public testing::Test {
 protected:
  Status order(BrakeSide side, RuleId rule, bool off, PopInstant wall = kWall) {
    return brakes.order({.side = side, .rule = rule, .off = off, .reason = "because"}, wall);
  }

  std::vector<Told> told;
  Brakes brakes{"a", [this](const Brakes::Change& change) {
                  told.push_back({change.side, {change.brakes.begin(), change.brakes.end()}, change.from});
                }};
  const RuleSet rules{{rule_numbered("login", 7), rule_numbered("api", 3)}};
};

TEST_F(BrakesTest, nothing_is_off_until_it_is_ordered) {
  EXPECT_FALSE(brakes.any_off());
  EXPECT_FALSE(brakes.is_off(rule_id("login"), false));
  EXPECT_EQ(brakes.effect(rules), BrakeEffect{});
}

TEST_F(BrakesTest, off_for_everything_holds_for_operators_blocks_too) {
  ASSERT_TRUE(order(BrakeSide::kNode, kEveryRule, true));
  EXPECT_TRUE(brakes.is_off(rule_id("login"), false));
  EXPECT_TRUE(brakes.is_off(rule_id("login"), true));
  EXPECT_TRUE(brakes.effect(rules).all);
}

TEST_F(BrakesTest, off_for_a_rule_leaves_other_rules_and_operators_blocks_alone) {
  ASSERT_TRUE(order(BrakeSide::kPop, rule_id("login"), true));
  EXPECT_TRUE(brakes.is_off(rule_id("login"), false));
  EXPECT_FALSE(brakes.is_off(rule_id("login"), true));
  EXPECT_FALSE(brakes.is_off(rule_id("api"), false));
  EXPECT_EQ(brakes.effect(rules), (BrakeEffect{false, {7}}));
}

TEST_F(BrakesTest, on_overrules_no_other_scope) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  ASSERT_TRUE(order(BrakeSide::kNode, kEveryRule, true));
  ASSERT_TRUE(order(BrakeSide::kPop, rule_id("api"), true));
  ASSERT_TRUE(order(BrakeSide::kNode, kEveryRule, false));
  EXPECT_TRUE(brakes.effect(rules).all);
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, false));
  EXPECT_EQ(brakes.effect(rules), (BrakeEffect{false, {3}}));
}

TEST_F(BrakesTest, an_order_is_told_with_who_when_and_why) {
  ASSERT_TRUE(order(BrakeSide::kPop, rule_id("api"), true));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].side, BrakeSide::kPop);
  EXPECT_EQ(told[0].from, 0U);
  const Brake expected{rule_id("api"), true, {kWallStamp, node_id("a")}, BrakeOrigin::kOperator, kWall, "a", "because"};
  EXPECT_EQ(told[0].brakes, std::vector{expected});
}

TEST_F(BrakesTest, a_later_order_stands_though_the_clock_was_set_back) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, false, kWall - seconds(3600)));
  EXPECT_FALSE(brakes.any_off());
  EXPECT_EQ(brakes.find(BrakeSide::kPop, kEveryRule)->version.stamp, kWallStamp + 1);
}

TEST_F(BrakesTest, an_order_of_a_node_that_knew_nothing_stands_over_last_weeks) {
  const Brake last_week{kEveryRule, false, {kWallStamp - 604'800'000'000, node_id("b")}, {}, kWall, "b", ""};
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  brakes.merge(std::span(&last_week, 1), node_id("b"));
  EXPECT_TRUE(brakes.any_off());
}

TEST_F(BrakesTest, only_what_changed_is_told_on_and_nothing_when_nothing_did) {
  const Brake known{1, true, {10, 5}, {}, kWall, "b", ""};
  const Brake news{2, true, {11, 5}, {}, kWall, "b", ""};
  brakes.merge(std::vector{known}, 5);
  brakes.merge(std::vector{known, news}, 5);
  brakes.merge(std::vector{known, news}, 6);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].brakes, std::vector{news});
  EXPECT_EQ(told[1].from, 5U);
}

TEST_F(BrakesTest, of_two_orders_with_one_version_off_stands_whichever_comes_first) {
  const Brake off{kEveryRule, true, {10, 5}, {}, kWall, "b", ""};
  Brake on = off;
  on.off = false;
  on.reason = "zzz";
  brakes.merge(std::vector{off, on}, 5);
  EXPECT_TRUE(brakes.any_off());
  Brakes other("c", [](const Brakes::Change&) {});
  other.merge(std::vector{on, off}, 5);
  EXPECT_EQ(other.digest(), brakes.digest());
}

TEST_F(BrakesTest, a_stamp_absurdly_ahead_is_refused) {
  const Brake absurd{kEveryRule, true, {kBrakeStampMax + 1, 5}, {}, kWall, "b", ""};
  brakes.merge(std::vector{absurd}, 5);
  EXPECT_FALSE(brakes.any_off());
  EXPECT_TRUE(told.empty());
}

TEST_F(BrakesTest, at_the_bound_the_oldest_on_makes_room_and_an_off_never_does) {
  for (std::uint64_t i = 1; i <= kBrakesMax; ++i) ASSERT_TRUE(order(BrakeSide::kNode, i, i != 100 && i != 200));
  ASSERT_TRUE(order(BrakeSide::kNode, kBrakesMax + 1, true));
  EXPECT_EQ(brakes.find(BrakeSide::kNode, 100), nullptr);
  EXPECT_NE(brakes.find(BrakeSide::kNode, 200), nullptr);
  ASSERT_TRUE(order(BrakeSide::kNode, kBrakesMax + 2, true));
  EXPECT_FALSE(order(BrakeSide::kNode, kBrakesMax + 3, true)) << "every register is off";
  EXPECT_TRUE(order(BrakeSide::kNode, kEveryRule, true)) << "there is always room for everything";
  EXPECT_TRUE(order(BrakeSide::kPop, 5, true)) << "the PoP's registers are apart";
}

TEST_F(BrakesTest, more_rules_off_than_workers_can_be_told_turn_everything_off) {
  std::vector<Rule> many;
  for (RuleNumber i = 1; i <= kTableRulesOffMax + 1; ++i) many.push_back(rule_numbered("rule" + std::to_string(i), i));
  const RuleSet all(many);
  for (RuleNumber i = 0; i < kTableRulesOffMax; ++i) ASSERT_TRUE(order(BrakeSide::kPop, many[i].id, true));
  EXPECT_FALSE(brakes.effect(all).all);
  EXPECT_EQ(brakes.effect(all).rules.size(), kTableRulesOffMax);
  ASSERT_TRUE(order(BrakeSide::kNode, many[kTableRulesOffMax].id, true));
  EXPECT_TRUE(brakes.effect(all).all);
}

TEST_F(BrakesTest, a_restored_register_tells_nobody_and_does_not_go_back) {
  ASSERT_TRUE(order(BrakeSide::kNode, 5, true));
  told.clear();
  brakes.restore(BrakeSide::kNode, {5, false, {10, 5}, {}, kWall, "b", ""});
  EXPECT_TRUE(brakes.is_off(5, false));
  brakes.restore(BrakeSide::kNode, {6, true, {kWallStamp + 10, 5}, {}, kWall, "b", ""});
  EXPECT_TRUE(brakes.is_off(6, false));
  EXPECT_EQ(brakes.stamp(), kWallStamp + 10);
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace popgate
