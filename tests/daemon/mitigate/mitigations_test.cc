// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/mitigations.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

struct Change {
  Mitigation mitigation;
  Origin origin;
};

class MitigationsTest : public ::testing::Test {
 protected:
  explicit MitigationsTest(std::size_t entries_max = 1000)
      : set({"a", 1, entries_max}, [this](const Mitigation& m, const Origin& origin) {
          changes.push_back({m, origin});
        }) {
    set.use_rules(sample_rules({rule}), now);
    set.allow_originating(0);
  }

  DecideOutcome decide(Key key, microseconds lasting, microseconds needed = seconds(1)) {
    return set.decide({key, rule, sample_evidence(150), {now + lasting, now + needed}}, now, wall);
  }
  void advance(microseconds by) {
    now += by;
    wall += by;
  }
  double figure(std::string_view name) const {
    double value = -1;
    set.visit([&](const Metric& metric) {
      if (metric.name == name) value = metric.value;
    });
    return value;
  }

  HostInstant now = kHostNow;
  PopInstant wall = kWallNow;
  Rule rule = sample_rule();
  std::vector<Change> changes;
  Mitigations set;
};

TEST_F(MitigationsTest, a_decision_is_enforced_reported_and_carries_who_when_and_why) {
  EXPECT_EQ(decide(kClient, minutes(10)), DecideOutcome::kDecided);
  const auto enforced = set.enforcement(kClient, now);
  ASSERT_TRUE(enforced);
  EXPECT_EQ(enforced->until, now + minutes(10));
  EXPECT_EQ(enforced->rule, rule.number);
  EXPECT_FALSE(enforced->by_operator);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].origin.kind, Origin::Kind::kLocal);
  const Mitigation& m = changes[0].mitigation;
  EXPECT_EQ(m.version, (Version{0, 1, node_id("a"), 1}));
  EXPECT_EQ(m.decided_by, "a");
  EXPECT_EQ(m.decided_at, wall);
  EXPECT_EQ(m.until_wall, wall + minutes(10));
  EXPECT_EQ(m.rule_revision, rule.revision);
  EXPECT_EQ(m.evidence.estimate, 150);
}

TEST_F(MitigationsTest, an_equal_decision_is_not_made_again) {
  decide(kClient, minutes(10));
  EXPECT_EQ(decide(kClient, minutes(10)), DecideOutcome::kAlreadyLive);
  advance(minutes(1));
  EXPECT_EQ(decide(kClient, minutes(10)), DecideOutcome::kAlreadyLive) << "9 of 10 minutes are left: more than 7/8";
  EXPECT_EQ(changes.size(), 1U);
  EXPECT_EQ(figure("popgate_mitigate_already_live"), 2);
}

TEST_F(MitigationsTest, a_mitigation_is_renewed_when_a_waiting_client_would_come_too_early) {
  decide(kClient, minutes(10), minutes(10));
  EXPECT_EQ(decide(kClient, minutes(10) + milliseconds(10), minutes(10) + milliseconds(10)), DecideOutcome::kRenewed);
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(10) + kRenewalMin);
  EXPECT_EQ(changes[1].mitigation.version.counter, 2U);
}

TEST_F(MitigationsTest, a_mitigation_is_renewed_when_less_than_seven_eighths_are_left) {
  decide(kClient, minutes(8));
  advance(minutes(1) + seconds(1));
  EXPECT_EQ(decide(kClient, minutes(8)), DecideOutcome::kRenewed);
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(8));
}

TEST_F(MitigationsTest, an_ended_mitigation_can_be_decided_again_and_beats_the_old_one) {
  decide(kClient, seconds(1));
  advance(seconds(1));
  EXPECT_FALSE(set.enforcement(kClient, now));
  EXPECT_EQ(decide(kClient, seconds(1)), DecideOutcome::kDecided);
  EXPECT_GT(changes[1].mitigation.version, changes[0].mitigation.version);
}

TEST_F(MitigationsTest, an_end_is_reported_once_and_the_entry_forgotten_after_its_time) {
  decide(kClient, seconds(1));
  advance(seconds(1));
  EXPECT_FALSE(set.expire(now));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].origin.kind, Origin::Kind::kEnded);
  EXPECT_NE(set.find(kClient).automatic, nullptr);
  advance(kEndedKept);
  EXPECT_FALSE(set.expire(now));
  EXPECT_EQ(set.find(kClient).automatic, nullptr);
  EXPECT_EQ(changes.size(), 2U);
}

TEST_F(MitigationsTest, ending_goes_at_a_bounded_rate) {
  Mitigations many({"a", 1, kExpirePerCall + 1}, [](const Mitigation&, const Origin&) {});
  many.allow_originating(0);
  for (std::uint64_t i = 0; i <= kExpirePerCall; ++i) {
    EXPECT_EQ(many.decide({{i, i}, rule, {}, {now + seconds(1), now}}, now, wall), DecideOutcome::kDecided);
  }
  EXPECT_TRUE(many.expire(now + seconds(1)));
  EXPECT_FALSE(many.expire(now + seconds(1)));
  EXPECT_EQ(many.digest(), Digest{});
}

TEST_F(MitigationsTest, nothing_is_decided_before_the_own_counter_is_known) {
  Mitigations fresh({"a", 1}, [](const Mitigation&, const Origin&) {});
  EXPECT_EQ(fresh.decide({kClient, rule, {}, {now + seconds(1), now}}, now, wall), DecideOutcome::kUnready);
  EXPECT_FALSE(fresh.block({kClient, 0, seconds(1), ""}, now, wall));
  EXPECT_FALSE(fresh.lift({kClient, wall, ""}, now, wall));
  fresh.allow_originating(41);
  EXPECT_EQ(fresh.decide({kClient, rule, {}, {now + seconds(1), now}}, now, wall), DecideOutcome::kDecided);
  EXPECT_EQ(fresh.find(kClient).automatic->version.counter, 42U);
}

TEST_F(MitigationsTest, a_restored_set_goes_on_with_its_counter_and_enforces_the_same) {
  decide(kClient, minutes(10));
  decide({9, 9}, minutes(10));
  Mitigations next({"a", 2}, [](const Mitigation&, const Origin&) {});
  next.use_rules(sample_rules({rule}), now);
  for (const Change& change : changes) next.restore(change.mitigation, now);
  EXPECT_FALSE(next.may_originate());
  next.allow_originating(0);
  EXPECT_EQ(next.enforcement(kClient, now)->until, now + minutes(10));
  EXPECT_EQ(next.digest(), set.digest());
  EXPECT_EQ(next.decide({{8, 8}, rule, {}, {now + seconds(1), now}}, now, wall), DecideOutcome::kDecided);
  EXPECT_EQ(next.find({8, 8}).automatic->version, (Version{0, 3, node_id("a"), 2}));
}

TEST_F(MitigationsTest, an_order_on_two_keys_is_possible_only_when_there_is_room_for_both) {
  const std::vector<Key> both{{1, 1}, {2, 2}};
  EXPECT_TRUE(set.can_order(EntryKind::kOperator, both));
  for (std::uint64_t i = 0; i < kOperatorEntriesMax - 1; ++i)
    ASSERT_TRUE(set.block({{i + 10, i}, 0, seconds(1), ""}, now, wall));
  EXPECT_FALSE(set.can_order(EntryKind::kOperator, both)) << "there is room for one";
  EXPECT_TRUE(set.can_order(EntryKind::kLift, both)) << "lifts have room of their own";
  ASSERT_TRUE(set.block({both[0], 0, seconds(1), ""}, now, wall));
  EXPECT_FALSE(set.can_order(EntryKind::kOperator, both));
  EXPECT_TRUE(set.can_order(EntryKind::kOperator, {both.data(), 1})) << "what is held needs no new place";
  advance(seconds(2));
  while (set.expire(now)) {
  }
  EXPECT_TRUE(set.can_order(EntryKind::kOperator, both)) << "ended ones make room";
  Mitigations fresh({"b", 1, 10}, [](const Mitigation&, const Origin&) {});
  EXPECT_FALSE(fresh.can_order(EntryKind::kOperator, both)) << "it does not know yet what is in force";
}

class SmallMitigationsTest : public MitigationsTest {
 protected:
  SmallMitigationsTest() : MitigationsTest(2) {}
};

TEST_F(SmallMitigationsTest, at_the_bound_decisions_are_refused_and_counted_and_no_live_one_gives_way) {
  decide({1, 1}, minutes(10));
  decide({2, 2}, minutes(10));
  EXPECT_EQ(decide({3, 3}, minutes(10)), DecideOutcome::kFull);
  EXPECT_EQ(figure("popgate_mitigate_refused_full"), 1);
  EXPECT_TRUE(set.enforcement({1, 1}, now));
  EXPECT_TRUE(set.enforcement({2, 2}, now));
  EXPECT_FALSE(set.enforcement({3, 3}, now));
  EXPECT_EQ(decide({2, 2}, minutes(20)), DecideOutcome::kRenewed) << "a held key needs no new place";
}

TEST_F(SmallMitigationsTest, at_the_bound_an_ended_entry_makes_room) {
  decide({1, 1}, seconds(1));
  decide({2, 2}, minutes(10));
  advance(seconds(1));
  set.expire(now);
  EXPECT_EQ(decide({3, 3}, minutes(10)), DecideOutcome::kDecided);
  EXPECT_EQ(figure("popgate_mitigate_ended_dropped_early"), 1);
  EXPECT_TRUE(set.enforcement({2, 2}, now));
}

TEST_F(SmallMitigationsTest, a_flood_of_decisions_cannot_keep_an_operator_from_acting) {
  decide({1, 1}, minutes(10));
  decide({2, 2}, minutes(10));
  EXPECT_TRUE(set.block({{3, 3}, 0, minutes(1), "scraper"}, now, wall));
  EXPECT_TRUE(set.lift({{1, 1}, wall, "customer"}, now, wall));
  EXPECT_TRUE(set.enforcement({3, 3}, now));
  EXPECT_FALSE(set.enforcement({1, 1}, now));
}

TEST_F(MitigationsTest, an_operators_block_needs_no_rule_and_is_capped) {
  EXPECT_TRUE(set.block({kClient, 0, kMitigationMax + hours(1), "scraper"}, now, wall));
  const auto enforced = set.enforcement(kClient, now);
  ASSERT_TRUE(enforced);
  EXPECT_EQ(enforced->until, now + kMitigationMax);
  EXPECT_TRUE(enforced->by_operator);
  EXPECT_EQ(changes[0].mitigation.reason, "scraper");
  EXPECT_FALSE(set.block({kClient, 0, seconds(0), ""}, now, wall)) << "a block of no length is refused";
}

TEST_F(MitigationsTest, neither_of_a_decision_and_an_operators_block_shortens_the_other) {
  EXPECT_TRUE(set.block({kClient, 0, minutes(1), ""}, now, wall));
  decide(kClient, minutes(10));
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(10)) << "what Retry-After says must be true";
  EXPECT_TRUE(set.enforcement(kClient, now)->by_operator);
  advance(minutes(1));
  changes.clear();
  set.expire(now);
  ASSERT_EQ(changes.size(), 1U) << "the end is reported, so that what takes over is published";
  EXPECT_FALSE(set.enforcement(kClient, now)->by_operator);
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(9));
  EXPECT_TRUE(set.block({kClient, 0, minutes(20), ""}, now, wall));
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(20));
}

TEST_F(MitigationsTest, an_operators_block_wins_over_a_rule_that_only_logs) {
  rule.action = Action::kLog;
  set.use_rules(sample_rules({rule}), now);
  decide(kClient, minutes(10));
  EXPECT_TRUE(set.enforcement(kClient, now)->log_only);
  EXPECT_TRUE(set.block({kClient, rule.id, minutes(1), ""}, now, wall));
  EXPECT_FALSE(set.enforcement(kClient, now)->log_only);
  EXPECT_EQ(set.enforcement(kClient, now)->rule, rule.number);
}

TEST_F(MitigationsTest, a_lift_ends_both_spaces_and_leaves_its_watermark) {
  decide(kClient, minutes(10));
  EXPECT_TRUE(set.block({kClient, 0, minutes(10), ""}, now, wall));
  EXPECT_FALSE(set.watermark(kClient));
  EXPECT_TRUE(set.lift({kClient, wall, "customer"}, now, wall));
  EXPECT_FALSE(set.enforcement(kClient, now));
  EXPECT_EQ(set.watermark(kClient), wall);
  EXPECT_TRUE(changes.back().mitigation.lifted);
  EXPECT_EQ(changes.back().mitigation.version.epoch, static_cast<std::uint64_t>(wall.time_since_epoch().count()));
}

TEST_F(MitigationsTest, a_decision_after_a_lift_stands_and_carries_what_it_knew) {
  EXPECT_TRUE(set.lift({kClient, wall, ""}, now, wall));
  EXPECT_EQ(decide(kClient, minutes(10)), DecideOutcome::kDecided);
  EXPECT_TRUE(set.enforcement(kClient, now));
  EXPECT_EQ(set.find(kClient).automatic->version.epoch, set.find(kClient).lift->version.epoch);
  EXPECT_EQ(set.watermark(kClient), wall) << "hits before the lift stay forgiven";
}

TEST_F(MitigationsTest, a_second_lift_by_a_clock_that_went_back_still_raises_epoch_and_watermark) {
  EXPECT_TRUE(set.lift({kClient, wall, ""}, now, wall));
  EXPECT_TRUE(set.lift({kClient, wall - hours(1), ""}, now, wall - hours(1)));
  EXPECT_EQ(set.watermark(kClient), wall + microseconds(1));
}

TEST_F(MitigationsTest, a_lift_is_kept_until_no_decision_made_before_it_can_live) {
  EXPECT_TRUE(set.lift({kClient, wall, ""}, now, wall));
  advance(kMitigationMax + seconds(59));
  set.expire(now);
  EXPECT_NE(set.find(kClient).lift, nullptr);
  advance(kEndedKept + seconds(2));
  set.expire(now);
  EXPECT_EQ(set.find(kClient).lift, nullptr);
}

TEST_F(MitigationsTest, changed_rules_report_exactly_the_entries_whose_effect_changed) {
  const Rule other = sample_rule(8);
  set.use_rules(sample_rules({rule, other}), now);
  decide(kClient, minutes(10));
  EXPECT_EQ(set.decide({{5, 5}, other, sample_evidence(150), {now + minutes(10), now}}, now, wall),
            DecideOutcome::kDecided);
  changes.clear();
  set.use_rules(sample_rules({other}), now);  // `rule` is deleted
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].mitigation.key, kClient);
  EXPECT_EQ(changes[0].origin.kind, Origin::Kind::kRules);
  EXPECT_FALSE(set.enforcement(kClient, now));
  EXPECT_TRUE(set.enforcement({5, 5}, now));
  EXPECT_NE(set.find(kClient).automatic, nullptr) << "it is kept, and back with the rule";
  set.use_rules(sample_rules({rule, other}), now);
  EXPECT_TRUE(set.enforcement(kClient, now));
}

TEST_F(MitigationsTest, a_client_freed_by_a_raised_limit_can_be_decided_again) {
  decide(kClient, minutes(10));
  rule = sample_rule(7, 200);
  set.use_rules(sample_rules({rule}), now);
  EXPECT_FALSE(set.enforcement(kClient, now));
  EXPECT_EQ(set.decide({kClient, rule, sample_evidence(201), {now + minutes(1), now}}, now, wall),
            DecideOutcome::kDecided);
  EXPECT_EQ(set.enforcement(kClient, now)->until, now + minutes(1));
}

TEST_F(MitigationsTest, filters_choose_by_kind_rule_and_life) {
  decide({1, 1}, seconds(1));
  EXPECT_TRUE(set.block({{2, 2}, 0, hours(1), ""}, now, wall));
  EXPECT_TRUE(set.lift({{3, 3}, wall, ""}, now, wall));
  advance(seconds(1));
  set.expire(now);
  const auto count = [&](const Mitigations::Filter& filter) {
    int found = 0;
    set.for_each(filter, [&](const Mitigation&) { ++found; });
    return found;
  };
  EXPECT_EQ(count({}), 2);
  EXPECT_EQ(count({std::nullopt, std::nullopt, true}), 3);
  EXPECT_EQ(count({EntryKind::kOperator, std::nullopt, true}), 1);
  EXPECT_EQ(count({std::nullopt, rule.id, true}), 1);
}

TEST(NodeIds, names_that_differ_have_ids_that_differ_and_the_same_name_the_same) {
  EXPECT_EQ(node_id("edge-1"), node_id("edge-1"));
  EXPECT_NE(node_id("edge-1"), node_id("edge-2"));
  EXPECT_NE(node_id(""), node_id("a"));
}

}  // namespace
}  // namespace popgate
