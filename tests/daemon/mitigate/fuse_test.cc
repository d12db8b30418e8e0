// SPDX-License-Identifier: Apache-2.0
//
// Figures of model nodes, second by second, and the share that a person would work out from them.
#include "daemon/mitigate/fuse.h"

#include <gtest/gtest.h>

#include <functional>

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr RuleId kRule = 7;

/// A node whose traffic is so many requests a second, of which so many are blocked.
struct ModelNode {
  NodeId id = 0;
  std::uint64_t requests = 0;
  std::uint64_t blocked = 0;
  std::uint64_t incarnation = 1;
  bool heard = true;
  bool gone = false;
  RequestFigures sums{};
};

class FuseTest : public testing::Test {
 protected:
  explicit FuseTest(double share = 0.3) : rated_{{kRule, share}} {}

  ModelNode& add(std::uint64_t requests, std::uint64_t blocked) {
    nodes_.push_back({.id = nodes_.size(), .requests = requests, .blocked = blocked});
    return nodes_.back();
  }
  /// Lets seconds pass; what the fuse said last.
  Fuse::Judged run(int count) {
    Fuse::Judged judged;
    for (int i = 0; i < count; ++i) {
      now_ += seconds(1);
      std::vector<Fuse::Member> peers;
      for (ModelNode& node : nodes_) {
        node.sums.requests += node.requests;
        node.sums.would_block[kRule] += node.blocked;
        if (node.heard && !node.gone) fuse_.hear(node.id, node.incarnation, node.sums, now_);
        if (node.id != 0) peers.push_back({node.id, node.gone});
      }
      judged = fuse_.judge(rated_, peers, now_);
      for (const Fuse::Share& share : judged.shares) blew_ = blew_ || share.blown;
    }
    return judged;
  }
  static void restart(ModelNode& node) {
    ++node.incarnation;
    node.sums = {};
  }

  std::vector<Fuse::Rated> rated_;
  std::deque<ModelNode> nodes_;
  HostInstant now_{seconds(1000)};
  Fuse fuse_;
  bool blew_ = false;
};

TEST_F(FuseTest, the_share_is_all_blocked_of_all_requests_over_the_last_window) {
  add(1000, 600);
  add(1000, 0);
  add(2000, 400);
  const Fuse::Judged judged = run(20);
  EXPECT_TRUE(judged.for_pop);
  ASSERT_EQ(judged.shares.size(), 1U);
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 0.25);  // 1,000 of 4,000
  EXPECT_EQ(judged.shares[0].requests, 40'000U);
  EXPECT_FALSE(blew_);
}

TEST_F(FuseTest, blows_when_the_share_is_passed_and_not_when_it_is_met) {
  ModelNode& node = add(1000, 300);
  (void)run(30);
  EXPECT_FALSE(blew_);
  node.blocked = 301;
  (void)run(9);
  EXPECT_TRUE(blew_);
}

TEST_F(FuseTest, blows_within_a_window_of_a_wrong_rule) {
  ModelNode& node = add(1000, 0);
  (void)run(20);
  node.blocked = 900;
  (void)run(3);  // 2,700 of 10,000
  EXPECT_FALSE(blew_);
  (void)run(1);  // 3,600
  EXPECT_TRUE(blew_);
}

TEST_F(FuseTest, nothing_is_judged_before_a_window_has_passed) {
  add(1000, 1000);
  EXPECT_TRUE(run(10).shares.empty());
  (void)run(1);
  EXPECT_TRUE(blew_);
}

TEST_F(FuseTest, few_requests_judge_nothing) {
  add(99, 99);  // 990 in a window
  (void)run(60);
  EXPECT_FALSE(blew_);
}

TEST_F(FuseTest, many_small_nodes_are_judged_together_and_one_odd_one_does_not_blow_it) {
  for (int i = 0; i < 40; ++i) add(10, 2);
  add(10, 10);
  const Fuse::Judged judged = run(30);
  EXPECT_FALSE(blew_);
  ASSERT_EQ(judged.shares.size(), 1U);
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 90.0 / 410.0);
}

TEST_F(FuseTest, a_peer_that_falls_silent_makes_no_share_greater) {
  add(1000, 600);
  ModelNode& clean = add(2000, 0);
  add(1000, 0);
  (void)run(20);
  clean.heard = false;  // two of three members still hear each other
  const Fuse::Judged judged = run(59);
  EXPECT_FALSE(blew_);
  EXPECT_TRUE(judged.for_pop);
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 0.15);  // 600 of 1,000 + 1,000 and 2,000 that are taken as passed
  (void)run(10);                                   // then the PoP is taken to be what is left of it: 600 of 2,000
  EXPECT_FALSE(blew_);
}

TEST_F(FuseTest, a_peer_that_restarts_or_comes_back_makes_no_share_greater) {
  add(1000, 600);
  ModelNode& clean = add(2000, 0);
  (void)run(20);
  restart(clean);
  (void)run(30);
  EXPECT_FALSE(blew_);
  clean.heard = false;
  (void)run(30);
  clean.heard = true;
  (void)run(30);
  EXPECT_FALSE(blew_);
}

TEST_F(FuseTest, sums_that_fall_without_a_restart_begin_again) {
  add(1000, 0);
  ModelNode& odd = add(1000, 100);
  (void)run(20);
  odd.sums = {};
  const Fuse::Judged judged = run(5);
  ASSERT_EQ(judged.shares.size(), 1U);
  EXPECT_EQ(judged.shares[0].requests, 20'000U);
}

TEST_F(FuseTest, a_peer_that_comes_back_does_not_count_for_the_time_that_it_was_silent) {
  add(1000, 0);
  add(1000, 0);
  ModelNode& busy = add(1000, 600);
  (void)run(20);
  busy.heard = false;
  (void)run(30);
  busy.heard = true;
  const Fuse::Judged judged = run(30);
  EXPECT_FALSE(blew_);  // 40 of its seconds against 10 of the others would be 24,000 of 60,000
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 0.2);
}

TEST_F(FuseTest, a_node_cut_off_speaks_for_itself_only_and_after_a_minute) {
  add(1000, 600);
  add(2000, 0).heard = true;
  add(2000, 0);
  (void)run(20);
  nodes_[1].heard = nodes_[2].heard = false;
  EXPECT_FALSE(run(59).for_pop);
  EXPECT_FALSE(blew_);
  const Fuse::Judged judged = run(10);
  EXPECT_TRUE(blew_);
  EXPECT_FALSE(judged.for_pop);
}

TEST_F(FuseTest, half_of_the_members_are_not_more_than_half) {
  add(1000, 100);
  add(1000, 100);
  (void)run(20);
  nodes_[1].heard = false;
  EXPECT_FALSE(run(5).for_pop);
}

TEST_F(FuseTest, members_that_said_goodbye_are_not_missed_and_their_requests_no_longer_count) {
  add(1000, 600);
  add(2000, 0);
  (void)run(20);
  nodes_[1].gone = true;
  const Fuse::Judged judged = run(2);
  EXPECT_TRUE(judged.for_pop);
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 0.6);
  EXPECT_TRUE(blew_);
}

TEST_F(FuseTest, after_a_reset_a_whole_window_passes_before_it_can_blow_again) {
  ModelNode& node = add(1000, 600);
  (void)run(20);
  ASSERT_TRUE(blew_);
  blew_ = false;
  fuse_.reset(kRule, now_);
  (void)run(9);
  EXPECT_FALSE(blew_);
  (void)run(1);
  EXPECT_TRUE(blew_) << "it is still over";
  blew_ = false;
  fuse_.reset(kRule, now_);
  node.blocked = 0;
  (void)run(60);
  EXPECT_FALSE(blew_) << "the figures of before do not count";
}

TEST_F(FuseTest, a_node_that_claims_more_blocked_than_requests_counts_as_all_blocked_at_most) {
  add(1000, 100'000);
  add(9000, 0);
  const Fuse::Judged judged = run(20);
  EXPECT_DOUBLE_EQ(judged.shares[0].share, 0.1);
}

TEST_F(FuseTest, a_rule_that_gets_a_fuse_while_the_daemon_runs_is_judged_from_then_on) {
  ModelNode& node = add(1000, 0);
  (void)run(20);
  rated_.push_back({kRule + 1, 0.1});
  for (int i = 0; i < 5; ++i) {
    node.sums.would_block[kRule + 1] += 500;
    (void)run(1);
  }
  EXPECT_TRUE(blew_);  // 2,500 of 10,000
}

}  // namespace
}  // namespace popgate
