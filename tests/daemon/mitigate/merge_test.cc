// SPDX-License-Identifier: Apache-2.0
// What a node makes of its peers' entries.
#include <gtest/gtest.h>

#include "tests/daemon/mitigate/samples.h"

namespace popgate {
namespace {

class MergeTest : public ::testing::Test {
 protected:
  MergeTest() : set({"b", 1, 3}, [this](const Mitigation&, const Origin& origin) { origins.push_back(origin); }) {
    set.use_rules(sample_rules({sample_rule()}), kHostNow);
    set.allow_originating(0);
  }

  Mitigation from_a(Version version, microseconds remaining = minutes(10), Key key = kClient) const {
    Mitigation m;
    m.key = key;
    m.rule = 7;
    m.rule_revision = sample_rule().revision;
    m.version = version;
    m.version.node = a;
    m.until = kHostNow + remaining;
    m.until_wall = kWallNow + remaining;
    m.decided_at = kWallNow;
    m.decided_by = "a";
    m.evidence = sample_evidence();
    return m;
  }
  Mitigation lift_from_a(Version version, PopInstant watermark = kWallNow) const {
    Mitigation m = from_a(version, kLiftKept);
    m.lifted = true;
    m.space = Space::kOperator;
    m.rule = 0;
    m.version.epoch = epoch_at(watermark);
    m.watermark = watermark;
    return m;
  }
  static std::uint64_t epoch_at(PopInstant t) { return static_cast<std::uint64_t>(t.time_since_epoch().count()); }
  MergeOutcome merge(const Mitigation& m) { return set.merge(m, {Origin::Kind::kPeer, a}, kHostNow); }
  double figure(std::string_view name) const {
    double value = -1;
    set.visit([&](const Metric& metric) {
      if (metric.name == name) value = metric.value;
    });
    return value;
  }

  const NodeId a = node_id("a");
  std::vector<Origin> origins;
  Mitigations set;
};

TEST_F(MergeTest, news_is_enforced_and_reported_with_the_peer_it_came_from) {
  EXPECT_EQ(merge(from_a({0, 1})), MergeOutcome::kChanged);
  EXPECT_EQ(set.enforcement(kClient, kHostNow)->until, kHostNow + minutes(10));
  ASSERT_EQ(origins.size(), 1U);
  EXPECT_EQ(origins[0].kind, Origin::Kind::kPeer);
  EXPECT_EQ(origins[0].peer, a);
}

TEST_F(MergeTest, the_same_entry_again_changes_nothing_and_is_not_reported) {
  merge(from_a({0, 1}));
  EXPECT_EQ(merge(from_a({0, 1})), MergeOutcome::kUnchanged);
  EXPECT_EQ(origins.size(), 1U);
}

TEST_F(MergeTest, the_higher_version_stands_whatever_order_they_come_in) {
  EXPECT_EQ(merge(from_a({0, 2}, minutes(2))), MergeOutcome::kChanged);
  EXPECT_EQ(merge(from_a({0, 1}, minutes(30))), MergeOutcome::kUnchanged);
  EXPECT_EQ(merge(from_a({0, 3}, minutes(1))), MergeOutcome::kChanged);
  EXPECT_EQ(set.enforcement(kClient, kHostNow)->until, kHostNow + minutes(1));
}

TEST_F(MergeTest, of_one_version_the_earlier_end_stands) {
  merge(from_a({0, 1}, minutes(10)));
  EXPECT_EQ(merge(from_a({0, 1}, minutes(11))), MergeOutcome::kUnchanged);
  EXPECT_EQ(set.enforcement(kClient, kHostNow)->until, kHostNow + minutes(10));
  EXPECT_EQ(merge(from_a({0, 1}, minutes(9))), MergeOutcome::kChanged);
  EXPECT_EQ(set.enforcement(kClient, kHostNow)->until, kHostNow + minutes(9));
}

TEST_F(MergeTest, ends_that_differ_by_travel_time_are_not_news) {
  merge(from_a({0, 1}, minutes(10)));
  EXPECT_EQ(merge(from_a({0, 1}, minutes(10) - kEndSlack + microseconds(1))), MergeOutcome::kUnchanged);
  EXPECT_EQ(merge(from_a({0, 1}, minutes(10) - kEndSlack)), MergeOutcome::kChanged);
}

TEST_F(MergeTest, an_ended_entry_beats_a_late_copy_of_itself) {
  merge(from_a({0, 1}, seconds(1)));
  set.expire(kHostNow + seconds(1));
  EXPECT_EQ(set.merge(from_a({0, 1}, seconds(5)), {Origin::Kind::kPeer, a}, kHostNow + seconds(1)),
            MergeOutcome::kUnchanged);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow + seconds(2)));
}

TEST_F(MergeTest, an_entry_outlives_what_it_replaced_so_that_no_old_copy_comes_back) {
  merge(from_a({0, 1}, hours(1)));
  merge(from_a({0, 2}, seconds(1)));
  const HostInstant later = kHostNow + minutes(30);
  set.expire(later);
  set.expire(later);
  EXPECT_EQ(set.merge(from_a({0, 1}, hours(1)), {Origin::Kind::kPeer, a}, later), MergeOutcome::kUnchanged);
  EXPECT_FALSE(set.enforcement(kClient, later));
}

TEST_F(MergeTest, an_ended_entry_ends_the_older_one_that_is_held) {
  merge(from_a({0, 1}, hours(1)));
  EXPECT_EQ(merge(from_a({0, 2}, -seconds(1))), MergeOutcome::kChanged);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow));
}

TEST_F(MergeTest, an_ended_entry_of_an_unknown_key_is_not_kept) {
  EXPECT_EQ(merge(from_a({0, 1}, seconds(0))), MergeOutcome::kUnchanged);
  EXPECT_EQ(set.find(kClient).automatic, nullptr);
}

TEST_F(MergeTest, a_lift_beats_what_it_did_not_know_before_and_after_it_arrives) {
  merge(from_a({0, 5}));
  EXPECT_EQ(merge(lift_from_a({0, 2})), MergeOutcome::kChanged);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow));
  EXPECT_EQ(merge(from_a({0, 9})), MergeOutcome::kUnchanged);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow));
  EXPECT_EQ(figure("popgate_mitigate_beaten"), 1);
  EXPECT_EQ(merge(from_a({epoch_at(kWallNow), 10})), MergeOutcome::kChanged);
  EXPECT_TRUE(set.enforcement(kClient, kHostNow));
}

TEST_F(MergeTest, of_two_lifts_at_once_the_later_stands_over_a_decision_that_knew_only_the_earlier) {
  const PopInstant later = kWallNow + seconds(5);
  merge(lift_from_a({}));
  merge(from_a({epoch_at(kWallNow), 10}));
  EXPECT_TRUE(set.enforcement(kClient, kHostNow));
  EXPECT_EQ(merge(lift_from_a({}, later)), MergeOutcome::kChanged);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow));
  EXPECT_EQ(set.watermark(kClient), later);
  EXPECT_EQ(merge(from_a({epoch_at(kWallNow), 11})), MergeOutcome::kUnchanged);
  EXPECT_EQ(merge(from_a({epoch_at(later), 12})), MergeOutcome::kChanged);
}

TEST_F(MergeTest, a_decision_that_comes_before_the_lift_it_knew_brings_the_watermark) {
  merge(from_a({epoch_at(kWallNow), 1}));
  EXPECT_EQ(set.watermark(kClient), kWallNow);
}

TEST_F(MergeTest, own_decisions_stand_over_every_counter_seen) {
  merge(from_a({0, 1000}, seconds(5)));
  const Rule rule = sample_rule();
  EXPECT_EQ(set.decide({kClient, rule, {}, {kHostNow + minutes(10), kHostNow}}, kHostNow, kWallNow),
            DecideOutcome::kRenewed);
  EXPECT_EQ(set.find(kClient).automatic->version.counter, 1001U);
  EXPECT_EQ(set.find(kClient).automatic->decided_by, "b");
}

TEST_F(MergeTest, counters_and_epochs_absurdly_ahead_are_refused_and_counted) {
  EXPECT_EQ(merge(from_a({0, kCounterLeapMax + 1})), MergeOutcome::kRefused);
  EXPECT_EQ(merge(from_a({kEpochMax + 1, 1})), MergeOutcome::kRefused);
  EXPECT_EQ(merge(from_a({0, ~std::uint64_t{0}})), MergeOutcome::kRefused);
  EXPECT_EQ(figure("popgate_mitigate_refused_ahead"), 3);
  EXPECT_EQ(set.counter(), 0U);
  EXPECT_EQ(merge(from_a({0, kCounterLeapMax})), MergeOutcome::kChanged);
}

TEST_F(MergeTest, decisions_that_this_daemon_never_made_are_refused) {
  Mitigation forged = from_a({0, 5});
  forged.version.node = node_id("b");
  forged.version.incarnation = 1;
  EXPECT_EQ(merge(forged), MergeOutcome::kRefused);
  EXPECT_EQ(figure("popgate_mitigate_refused_foreign"), 1);
  forged.version.incarnation = 0;  // of an earlier daemon of this node: a peer kept it
  EXPECT_EQ(merge(forged), MergeOutcome::kChanged);
}

TEST_F(MergeTest, an_end_beyond_the_longest_mitigation_is_cut) {
  merge(from_a({0, 1}, hours(24 * 365)));
  EXPECT_EQ(set.enforcement(kClient, kHostNow)->until, kHostNow + kMitigationMax);
}

TEST_F(MergeTest, entries_of_unknown_rules_are_kept_and_reported_but_not_enforced) {
  Mitigation m = from_a({0, 1});
  m.rule = 99;
  EXPECT_EQ(merge(m), MergeOutcome::kChanged);
  EXPECT_EQ(origins.size(), 1U);
  EXPECT_FALSE(set.enforcement(kClient, kHostNow));
  EXPECT_EQ(set.digest().entries, 1U);
}

TEST_F(MergeTest, at_the_bound_peers_entries_are_refused_and_counted) {
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(merge(from_a({0, i + 1}, minutes(1), {i, i})), MergeOutcome::kChanged);
  EXPECT_EQ(merge(from_a({0, 9}, minutes(1), {9, 9})), MergeOutcome::kRefused);
  EXPECT_EQ(figure("popgate_mitigate_refused_merge_full"), 1);
  EXPECT_EQ(set.digest().entries, 3U);
}

}  // namespace
}  // namespace popgate
