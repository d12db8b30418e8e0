// SPDX-License-Identifier: Apache-2.0
//
// The shards of a PoP change while two nodes count the same keys without a pause: the totals that they judge by are the
// exact counts at every moment, with real memcached shared by both rings.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "daemon/count/counter_key.h"
#include "daemon/count/counter_loss.h"
#include "tests/daemon/count/counting_node.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

constexpr std::uint64_t kKeys = 60;  // of which some lie on other shards in the new ring, and some do not

class TwoRings : public ::testing::Test {
 protected:
  TwoRings() {
    const CountersConfig all = config_of(servers_);
    old_.shards = {all.shards[0], all.shards[1]};
    new_.shards = all.shards;
    for (std::uint64_t i = 1; i <= kKeys; ++i) keys_.push_back(test_key(i));
  }

  [[nodiscard]] CountersConfig counting(const RingConfig& ring, const RingConfig* also_read = nullptr) const {
    CountersConfig config;
    config.shards = ring.shards;
    if (also_read != nullptr) config.also_read = *also_read;
    config.timeout = milliseconds(2000);
    return config;
  }
  /// Restarts a node's daemon under another configuration, in good order.
  void restart(std::size_t index, const CountersConfig& config) {
    if (nodes_[index]) {
      ASSERT_TRUE(settle());
    }
    nodes_[index] = std::make_unique<CountingNode>(loop_, config, ++seed_);
    ASSERT_TRUE(run_until(loop_, [&] { return every_ring_answers(*nodes_[index]); }));
  }
  static bool every_ring_answers(CountingNode& node) {
    for (const RingStatus& ring : node.store().rings()) {
      if (!std::ranges::all_of(ring.shards, [](const ShardStatus& shard) { return shard.reachable; })) return false;
    }
    return true;
  }
  /// As if its shards had been in use for an hour: nothing is unknown of their past.
  void age(const RingConfig& ring) {
    const auto placement = Placement::make(ring.shards);
    ASSERT_TRUE(placement);
    const std::string value = std::to_string(CounterLoss::new_generation(PopClock::now() - std::chrono::hours(1), 1));
    for (std::size_t i = 0; i < ring.shards.size(); ++i) {
      const auto tag = placement->tag_on(static_cast<ShardIndex>(i));
      ASSERT_TRUE(tag);
      const std::string set = "set " + own_key(placement->ring_id(), *tag, "generation") + " 0 0 " +
                              std::to_string(value.size()) + "\r\n" + value + "\r\n";
      ASSERT_EQ(process::TextClient(servers_[i]->port()).ask(set, "\r\n"), "STORED\r\n");
    }
  }
  [[nodiscard]] bool settle() {
    return run_until(loop_, [&] {
      return std::ranges::all_of(nodes_, [](const auto& node) { return node == nullptr || node->store().idle(); });
    });
  }
  /// One hit for every key on each node at the same time, and another on one of them alone; then what the nodes know is
  /// compared with what was sent. The node that is the last to hear must know it all.
  void expect_exact_rounds(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (auto& node : nodes_) {
        node->reports.clear();
        node->hit(keys_, 1);
      }
      nodes_[static_cast<std::size_t>(round) % 2]->hit(keys_, 2);
      exact_ += 4;
      ASSERT_TRUE(run_until(
          loop_, [&] { return std::ranges::all_of(keys_, [&](const Key& key) { return most_known(key) >= exact_; }); }))
          << "round " << round << ": " << most_known(keys_[0]) << " of " << exact_;
      for (const Key& key : keys_) ASSERT_EQ(most_known(key), exact_) << "round " << round;
    }
  }
  /// The largest total of a fresh report.
  [[nodiscard]] std::uint64_t most_known(const Key& key) const {
    std::uint64_t most = 0;
    for (const auto& node : nodes_) {
      for (const Report& report : node->reports) {
        if (report.key == key && report.fresh) most = std::max(most, report.known());
      }
    }
    return most;
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<process::Memcached>> servers_ = start_servers(3);
  RingConfig old_;
  RingConfig new_;
  std::vector<Key> keys_;
  std::vector<std::unique_ptr<CountingNode>> nodes_{2};
  std::uint64_t exact_ = 0;  // hits of every key so far, all within the window
  std::uint64_t seed_ = 0;
};

TEST_F(TwoRings, every_total_is_exact_while_nodes_change_one_by_one) {
  for (const std::size_t node : {0U, 1U}) restart(node, counting(old_));
  expect_exact_rounds(3);
  for (const std::size_t node : {0U, 1U}) {
    restart(node, counting(old_, &new_));
    expect_exact_rounds(3);
  }
  for (const std::size_t node : {0U, 1U}) {
    restart(node, counting(new_, &old_));
    expect_exact_rounds(3);
  }
}

// What the procedure is for: without its first step the other node's hits of the meantime are missing.
TEST_F(TwoRings, without_the_first_step_hits_are_missing) {
  for (const std::size_t node : {0U, 1U}) restart(node, counting(old_));
  expect_exact_rounds(1);
  restart(0, counting(new_, &old_));
  nodes_[0]->hit(keys_, 5);
  ASSERT_TRUE(settle());
  nodes_[1]->reports.clear();
  nodes_[1]->hit(keys_, 1);
  ASSERT_TRUE(run_until(loop_, [&] { return nodes_[1]->reports.size() >= kKeys; }));
  EXPECT_EQ(nodes_[1]->reports.back().known(), exact_ + 1);
}

TEST_F(TwoRings, what_is_also_read_is_never_added_to) {
  restart(0, counting(old_, &new_));
  nodes_[0]->hit(keys_, 3);
  ASSERT_TRUE(settle());
  const auto new_placement = Placement::make(new_.shards);
  ASSERT_TRUE(new_placement);
  EXPECT_EQ(total_in_memcached(servers_, *new_placement, keys_), 0U);
  EXPECT_EQ(total_in_memcached(servers_, nodes_[0]->store().placement(), keys_), 3 * kKeys);
}

TEST_F(TwoRings, a_shard_that_is_only_read_and_does_not_answer_leaves_the_upper_bound_unknown_and_no_more) {
  age(old_);
  age(new_);
  restart(0, counting(old_, &new_));
  servers_[2]->kill();  // of the new ring alone
  CountingNode& node = *nodes_[0];
  ASSERT_TRUE(run_until(loop_, [&] { return node.metric("popgate_count_also_read_reachable") < 3; }));
  node.hit(keys_, 3);
  ASSERT_TRUE(settle());
  const auto new_placement = Placement::make(new_.shards);
  ASSERT_TRUE(run_until(loop_, [&] {
    return std::ranges::any_of(node.reports, [](const Report& report) { return report.fresh; });
  })) << "of keys on shards that answer";
  for (const Report& report : node.reports) {
    EXPECT_FALSE(report.degraded);
    const bool is_on_it = new_placement->shard_of(report.key) == 2;
    EXPECT_EQ(report.counters_lost, is_on_it);
    EXPECT_FALSE(is_on_it && report.fresh);
  }
  EXPECT_FALSE(every_ring_answers(node));
}

}  // namespace
}  // namespace popgate
