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
  bool untold;
};

class BrakesTest : public testing::Test {
 protected:
  Status order(BrakeSide side, RuleId rule, bool off, PopInstant wall = kWall) {
    return brakes.order({.side = side, .rule = rule, .off = off, .reason = "because"}, wall);
  }

  std::vector<Told> told;
  Brakes brakes{
      "a", [this](const Brakes::Change& change) {
        told.push_back({change.side, {change.brakes.begin(), change.brakes.end()}, change.from, change.untold});
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

TEST_F(BrakesTest, peers_take_what_is_ordered_under_a_clock_absurdly_ahead_and_what_is_ordered_after_it) {
  const PopInstant absurd{microseconds(static_cast<std::int64_t>(kBrakeStampMax) + 1)};
  Brakes peer("b", [](const Brakes::Change&) {});
  ASSERT_TRUE(brakes.order({.side = BrakeSide::kPop, .rule = kEveryRule, .off = true}, absurd));
  peer.merge(brakes.told(), 1);
  EXPECT_TRUE(peer.is_off(kEveryRule, true));
  ASSERT_TRUE(brakes.order({.side = BrakeSide::kPop, .rule = kEveryRule, .off = false}, kWall));
  peer.merge(brakes.told(), 1);
  EXPECT_FALSE(peer.is_off(kEveryRule, true));
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

// ---- A node that has not heard a peer since it started ----

class UnheardBrakesTest : public BrakesTest {
 protected:
  UnheardBrakesTest() { brakes.expect_peers(); }
  /// What a peer held before: with a later clock than this node's.
  [[nodiscard]] static Brake peers(bool off, RuleId rule = kEveryRule) {
    return {rule, off, {kWallStamp + 3'600'000'000, node_id("b")}, {}, kWall, "b", "peer's"};
  }
  void hear(const Brake& brake) { brakes.merge(std::span(&brake, 1), node_id("b")); }
  [[nodiscard]] const Brake& held() const { return *brakes.find(BrakeSide::kPop, kEveryRule); }
};

TEST_F(UnheardBrakesTest, its_order_for_the_pop_is_in_force_here_and_told_to_nobody_until_a_peer_is_heard) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  EXPECT_TRUE(brakes.is_off(kEveryRule, true));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].untold);
  EXPECT_TRUE(brakes.told().empty());
  EXPECT_EQ(brakes.heard_peer(), std::vector{held()});
  EXPECT_EQ(brakes.told(), std::vector{held()});
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, false));
  EXPECT_FALSE(told[1].untold);
  EXPECT_TRUE(brakes.heard_peer().empty());
}

TEST_F(UnheardBrakesTest, its_off_stands_over_a_peers_later_on_and_is_told_past_it) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  hear(peers(false));
  EXPECT_TRUE(brakes.is_off(kEveryRule, true));
  EXPECT_EQ(held().reason, "because");
  EXPECT_TRUE(stands_over(held(), peers(false)));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[1].untold);
  EXPECT_EQ(told[1].brakes, std::vector{held()}) << "on disk with its new version";
  EXPECT_EQ(brakes.heard_peer(), std::vector{held()});
}

TEST_F(UnheardBrakesTest, its_on_does_not_stand_over_a_peers_later_off) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, false));
  hear(peers(true));
  EXPECT_EQ(held(), peers(true));
  EXPECT_TRUE(brakes.heard_peer().empty()) << "the peer's order is not its own to tell";
}

TEST_F(UnheardBrakesTest, once_told_its_off_is_an_order_like_any_other) {
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  (void)brakes.heard_peer();
  hear(peers(false));
  EXPECT_EQ(held(), peers(false));
}

TEST_F(UnheardBrakesTest, an_order_that_was_told_before_the_restart_is_not_given_anew) {
  brakes.restore(BrakeSide::kPop, {kEveryRule, true, {kWallStamp, node_id("a")}, {}, kWall, "a", "old"});
  hear(peers(false));
  EXPECT_EQ(held(), peers(false));
}

TEST_F(UnheardBrakesTest, an_order_that_nobody_was_told_before_the_restart_is) {
  brakes.restore(BrakeSide::kPop, {kEveryRule, true, {kWallStamp, node_id("a")}, {}, kWall, "a", "old"}, true);
  hear(peers(false));
  EXPECT_TRUE(brakes.is_off(kEveryRule, true));
  EXPECT_EQ(brakes.heard_peer().size(), 1U);
}

TEST_F(UnheardBrakesTest, what_was_off_is_told_past_every_stamp_that_the_node_has_passed) {
  brakes.restore(BrakeSide::kPop, {kEveryRule, true, {10, node_id("a")}, {}, kWall, "a", "old"}, true);
  brakes.pass(kWallStamp);  // of a later order, which is forgotten
  const std::vector<Brake> due = brakes.heard_peer();
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].version.stamp, kWallStamp + 1);
  EXPECT_EQ(due[0], held());
  EXPECT_FALSE(brakes.is_untold(BrakeSide::kPop, kEveryRule));
}

TEST_F(UnheardBrakesTest, an_order_for_the_node_alone_waits_for_nobody) {
  ASSERT_TRUE(order(BrakeSide::kNode, kEveryRule, true));
  EXPECT_FALSE(told[0].untold);
  EXPECT_TRUE(brakes.heard_peer().empty());
}

TEST_F(BrakesTest, no_order_has_a_stamp_that_was_passed) {
  brakes.pass(kWallStamp + 5);
  ASSERT_TRUE(order(BrakeSide::kPop, kEveryRule, true));
  EXPECT_EQ(brakes.stamp(), kWallStamp + 6);
  brakes.pass(kBrakeStampMax + 1);
  EXPECT_EQ(brakes.stamp(), kWallStamp + 6) << "what is absurd is not believed";
}

}  // namespace
}  // namespace popgate
