// SPDX-License-Identifier: Apache-2.0
// What one node decides is enforced on all: three real meshes on loopback sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/peers/pop_of_meshes.h"

namespace popgate {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class MeshSpreadTest : public ::testing::Test {
 protected:
  [[nodiscard]] bool all_block(const Key& key) { return a().blocks(key) && b().blocks(key) && c().blocks(key); }
  [[nodiscard]] bool none_blocks(const Key& key) { return !a().blocks(key) && !b().blocks(key) && !c().blocks(key); }
  [[nodiscard]] bool digests_equal() {
    return a().set->digest() == b().set->digest() && b().set->digest() == c().set->digest();
  }
  void start_settled() {
    pop.start_all();
    ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  }
  MeshNode& a() { return pop.node("a"); }
  MeshNode& b() { return pop.node("b"); }
  MeshNode& c() { return pop.node("c"); }

  PopOfMeshes pop{{"a", "b", "c"}};
};

TEST_F(MeshSpreadTest, a_decision_on_one_node_is_enforced_on_all) {
  start_settled();
  a().decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return all_block(kClient) && digests_equal(); }));
  EXPECT_EQ(b().set->find(kClient).automatic->decided_by, "a");
}

TEST_F(MeshSpreadTest, news_dies_out) {
  pop.start_all([](MeshOptions& options) { options.timings.digest = hours(1); });
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  for (std::uint64_t i = 0; i < 50; ++i) a().decide({i, i});
  ASSERT_TRUE(pop.run_until([&] { return digests_equal() && pop.settled(); }));
  ASSERT_TRUE(pop.run_until([&] { return c().figure("popgate_mitigate_unchanged") >= 50; }));
  // a tells both; each passes it to the other, which knows it; nobody tells it back to a.
  EXPECT_EQ(a().figure("popgate_mitigate_unchanged"), 0);
  EXPECT_EQ(b().figure("popgate_mitigate_merged"), 50);
  EXPECT_EQ(b().figure("popgate_mitigate_unchanged"), 50);
  EXPECT_EQ(c().figure("popgate_mitigate_unchanged"), 50);
}

TEST_F(MeshSpreadTest, a_late_joiner_gets_everything_lifts_too) {
  pop.start("a");
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  for (std::uint64_t i = 0; i < 3000; ++i) a().decide({i, i});
  b().lift({7, 7});
  ASSERT_TRUE(pop.run_until([&] { return a().set->digest() == b().set->digest(); }));
  pop.start("c");
  ASSERT_TRUE(pop.run_until([&] { return digests_equal(); }));
  ASSERT_TRUE(pop.run_until([&] { return c().snapshots_from.size() >= 2; }));
  EXPECT_THAT(c().snapshots_from, Contains("a"));
  EXPECT_THAT(c().snapshots_from, Contains("b"));
  EXPECT_NE(c().set->find({7, 7}).lift, nullptr);
  EXPECT_FALSE(c().blocks({7, 7}));
  EXPECT_TRUE(c().blocks({8, 8}));
  EXPECT_EQ(c().set->digest().entries, 3000U) << "2,999 decisions and a lift";
}

TEST_F(MeshSpreadTest, a_restarted_node_learns_its_own_decisions_back_and_goes_on_past_them) {
  start_settled();
  a().decide(kClient);
  a().decide({5, 5});
  ASSERT_TRUE(pop.run_until([&] { return all_block({5, 5}) && digests_equal(); }));
  const std::uint64_t first_incarnation = b().set->find(kClient).automatic->version.incarnation;
  pop.start("a");
  ASSERT_TRUE(pop.run_until([&] { return !a().snapshots_from.empty() && pop.settled(); }));
  EXPECT_TRUE(a().blocks(kClient));
  a().decide({6, 6});
  const Version next = a().set->find({6, 6}).automatic->version;
  EXPECT_EQ(next.counter, 3U) << "past the two that its last daemon made";
  EXPECT_NE(next.incarnation, first_incarnation);
  ASSERT_TRUE(pop.run_until([&] { return all_block({6, 6}) && digests_equal(); }));
}

TEST_F(MeshSpreadTest, remaining_time_survives_wrong_wall_clocks_and_other_boot_times) {
  a().reactor.boot_offset = hours(1000);
  b().reactor.wall_offset = -hours(24 * 365);
  c().reactor.boot_offset = hours(2);
  c().reactor.wall_offset = hours(24);
  start_settled();
  a().decide(kClient, minutes(10));
  ASSERT_TRUE(pop.run_until([&] { return all_block(kClient); }));
  const microseconds on_a = a().set->enforcement(kClient, a().now())->until - a().now();
  const microseconds on_b = b().set->enforcement(kClient, b().now())->until - b().now();
  const microseconds on_c = c().set->enforcement(kClient, c().now())->until - c().now();
  EXPECT_LT(std::chrono::abs(on_a - on_b), seconds(2));
  EXPECT_LT(std::chrono::abs(on_a - on_c), seconds(2));
}

TEST_F(MeshSpreadTest, a_lift_beats_a_decision_made_at_the_same_time_beyond_a_cut) {
  for (const char* other : {"b", "c"}) {
    pop.relay("a", other);
    pop.relay(other, "a");
  }
  start_settled();
  c().decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return all_block(kClient); }));
  for (const char* other : {"b", "c"}) {
    pop.relay("a", other).set_mode(TcpRelay::Mode::kCut);
    pop.relay(other, "a").set_mode(TcpRelay::Mode::kCut);
  }
  a().lift(kClient);
  EXPECT_FALSE(a().blocks(kClient));
  // b, which cannot hear of it, decides again for longer.
  const Rule rule = sample_rule();
  EXPECT_EQ(b().set->decide({kClient, rule, sample_evidence(200), {b().now() + hours(1), b().now() + hours(1)}},
                            b().now(), b().wall()),
            DecideOutcome::kRenewed);
  for (const char* other : {"b", "c"}) {
    pop.relay("a", other).set_mode(TcpRelay::Mode::kPass);
    pop.relay(other, "a").set_mode(TcpRelay::Mode::kPass);
  }
  ASSERT_TRUE(pop.run_until([&] { return none_blocks(kClient) && digests_equal(); }));
  EXPECT_EQ(a().set->find(kClient).automatic, nullptr);
}

TEST_F(MeshSpreadTest, news_reaches_a_node_that_only_one_other_can_reach) {
  pop.relay("a", "c").set_mode(TcpRelay::Mode::kCut);
  pop.relay("c", "a").set_mode(TcpRelay::Mode::kCut);
  pop.start_all([](MeshOptions& options) { options.timings.digest = hours(1); });
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").up_to_date && b().peer("c").up_to_date; }));
  a().decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return c().blocks(kClient); }));
}

TEST_F(MeshSpreadTest, what_was_missed_is_found_by_digests_and_sent_again) {
  start_settled();
  a().decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return all_block(kClient) && digests_equal(); }));
  // An entry that a has and never told, as if a frame had been lost in a peer's memory.
  Mitigation untold = *a().set->find(kClient).automatic;
  untold.key = {1, 2};
  a().set->restore(untold, a().now());
  ASSERT_TRUE(pop.run_until([&] { return all_block({1, 2}) && digests_equal(); }));
  EXPECT_GE(a().peer("b").resends, 1U);
  ASSERT_TRUE(pop.run_until([&] { return b().peer("a").digest_equal == true; }));
}

TEST_F(MeshSpreadTest, status_shows_acknowledgement_times_skew_and_coverage) {
  b().reactor.wall_offset = seconds(5);
  pop.start_all([](MeshOptions& options) { options.rules_revision = options.node == "c" ? 9 : 8; });
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  EXPECT_EQ(a().mesh->status().coverage, 1.0);
  const HostInstant begun = HostClock::now();
  a().decide(kClient);
  EXPECT_EQ(a().peer("b").lag, 1U);
  EXPECT_EQ(a().mesh->status().coverage, 0.0);
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").acks_timed == 1 && a().peer("b").skew.has_value(); }));
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  const PeerStatus peer = a().peer("b");
  EXPECT_EQ(a().mesh->status().coverage, 1.0);
  EXPECT_GT(peer.ack_max, microseconds(0));
  EXPECT_LE(peer.ack_max, HostClock::now() - begun);
  EXPECT_LE(peer.ack_p50, peer.ack_max);
  EXPECT_LT(std::chrono::abs(*peer.skew - seconds(5)), milliseconds(500));
  EXPECT_EQ(peer.rules_equal, true);
  EXPECT_EQ(a().peer("c").rules_equal, false);
  EXPECT_TRUE(peer.heard);
  EXPECT_GT(peer.bytes_out, 0U);
  EXPECT_GT(peer.frames_in, 0U);
  c().mesh->use_rules_revision(8);
  EXPECT_TRUE(pop.run_until([&] { return a().peer("c").rules_equal == true; }));
}

TEST_F(MeshSpreadTest, a_node_that_stops_in_good_order_says_goodbye) {
  start_settled();
  a().mesh->stop();
  ASSERT_TRUE(pop.run_until([&] { return b().peer("a").said_goodbye && c().peer("a").said_goodbye; }));
  EXPECT_FALSE(b().peer("a").heard);
  pop.start("a");
  ASSERT_TRUE(pop.run_until([&] { return b().peer("a").heard; }));
  EXPECT_FALSE(b().peer("a").said_goodbye);
}

TEST_F(MeshSpreadTest, lists_of_members_that_differ_are_shown) {
  pop.start("b");
  pop.start("a", [](MeshOptions& options) {
    options.peers.push_back({"z", {"127.0.0.1", options.listen.port, ""}});  // a fourth that b does not know
  });
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").up_to_date && b().peer("a").up_to_date; }));
  EXPECT_EQ(a().peer("b").members_equal, false);
  EXPECT_EQ(b().peer("a").members_equal, false);
}

}  // namespace
}  // namespace popgate
