// SPDX-License-Identifier: Apache-2.0
//
// What memcached and its surroundings can lose without an error: each is noticed, counted by what showed it, and leaves
// upper bounds unknown.
#include <gtest/gtest.h>

#include "daemon/count/counter_key.h"
#include "tests/daemon/count/counting_node.h"
#include "tests/daemon/count/scripted_shard.h"
#include "tests/process/nutcracker.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

class SilentLoss : public ::testing::Test {
 protected:
  void start(const CountersConfig& config) {
    node_ = std::make_unique<CountingNode>(loop_, config);
    ASSERT_TRUE(run_until(loop_, [&] { return node_->all_shards_reachable(); }));
  }
  void hit_and_wait(std::uint64_t hits) {
    node_->reports.clear();
    node_->hit(test_key(1), hits);
    ASSERT_TRUE(run_until(loop_, [&] { return !node_->reports.empty() && node_->reports.back().fresh; }));
  }
  [[nodiscard]] bool becomes(std::string_view name, double value) {
    return run_until(loop_, [&] { return node_->metric(name) == value; });
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<process::Memcached>> servers_ = start_servers(2);
  std::unique_ptr<CountingNode> node_;
};

TEST_F(SilentLoss, a_flush_of_everything_is_seen_by_the_generation_key) {
  start(config_of(servers_));
  hit_and_wait(5);
  // memcached's clock has whole seconds: what was stored within the second of a flush survives it.
  const HostInstant stored_at = HostClock::now();
  ASSERT_TRUE(run_until(loop_, [&] { return HostClock::now() - stored_at > milliseconds(2200); }));
  for (const auto& server : servers_) {
    ASSERT_EQ(process::TextClient(server->port()).ask("flush_all\r\n", "OK\r\n"), "OK\r\n");
  }
  EXPECT_TRUE(becomes("popgate_count_shard_generation_changes", 2)) << "each shard, within the idle probe's interval";
  hit_and_wait(1);
  EXPECT_TRUE(node_->reports.back().counters_lost);
  std::uint64_t largest = 0;  // of any slot: the last hit may have begun another
  for (const SlotCount& slot : node_->reports.back().slots) largest = std::max(largest, slot.known);
  EXPECT_EQ(largest, 5U) << "the largest total ever read";
}

TEST_F(SilentLoss, a_counter_that_was_there_and_is_not_is_seen_by_its_total) {
  start(config_of(servers_));
  hit_and_wait(5);
  const Placement& placement = node_->store().placement();
  const auto shard = placement.shard_of(test_key(1));
  const KeySlots slots(test_rules()->all().front().window, test_key(1));
  CounterNames names(placement.ring_id(), test_key(1), slots.shape().slot);
  process::TextClient client(servers_[shard]->port());
  const SlotIndex now = slots.slot_at(PopClock::now());
  for (SlotIndex slot = now - 1; slot <= now; ++slot) {
    const std::string reply = client.ask("delete " + std::string(names.of(slot)) + "\r\n", "\r\n");
    ASSERT_TRUE(reply == "DELETED\r\n" || reply == "NOT_FOUND\r\n") << reply;
  }
  hit_and_wait(2);
  EXPECT_TRUE(node_->reports.back().counters_lost);
  EXPECT_EQ(node_->metric("popgate_count_shard_totals_fallen"), 1);
  EXPECT_EQ(node_->metric("popgate_count_shard_generation_changes"), 0);
}

TEST_F(SilentLoss, a_proxy_that_places_keys_elsewhere_is_seen_by_a_ring_check) {
  // Under other names, and in the other order: about half of the keys lie elsewhere.
  process::Nutcracker proxy({{"one", servers_[0]->port()}, {"two", servers_[1]->port()}});
  start(through_proxy(config_of(servers_), proxy.port()));
  hit_and_wait(1);
  EXPECT_EQ(node_->metric("popgate_count_shard_misplacements"), 0);
  bool done = false;
  const auto check = node_->store().check_ring([&](const RingCheckReport& report) {
    EXPECT_FALSE(report.agrees());
    done = true;
  });
  ASSERT_TRUE(run_until(loop_, [&] { return done; }));
  EXPECT_GT(node_->metric("popgate_count_shard_misplacements"), 0);
  EXPECT_TRUE(node_->store().counters_lost(test_key(1), PopClock::now()));
}

// Never so configured by Popgate: an ejected shard's keys move to another, and come back with old totals.
TEST_F(SilentLoss, a_proxy_that_ejects_a_shard_is_seen_as_a_loss) {
  process::Nutcracker proxy([&](std::uint16_t port) {
    return "pop:\n  listen: 127.0.0.1:" + std::to_string(port) +
           "\n  hash: md5\n  distribution: ketama\n  hash_tag: \"{}\"\n  auto_eject_hosts: true\n"
           "  server_failure_limit: 1\n  server_retry_timeout: 60000\n  server_connections: 1\n  timeout: 300\n"
           "  servers:\n    - 127.0.0.1:" +
           std::to_string(servers_[0]->port()) + ":1 shard-0\n    - 127.0.0.1:" + std::to_string(servers_[1]->port()) +
           ":1 shard-1\n";
  });
  start(through_proxy(config_of(servers_), proxy.port()));
  hit_and_wait(5);
  servers_[node_->store().placement().shard_of(test_key(1))]->kill();
  node_->hit(test_key(1), 1);
  ASSERT_TRUE(run_until(loop_, [&] { return node_->metric("popgate_count_shard_losses") >= 1; }))
      << "a total fell, or the generation key is gone, or both";
  hit_and_wait(1);
  EXPECT_TRUE(node_->reports.back().counters_lost);
  EXPECT_GE(node_->reports.back().known(), 5U) << "the largest total ever read";
}

TEST(ShardWithoutMemory, says_so_and_its_hits_wait) {
  EventLoop loop;
  ScriptedShard shard(loop, [](const ScriptedShard::Command& command) {
    const bool counts = command.verb == "add" && command.line.find(":generation") == std::string::npos;
    return counts ? std::string("SERVER_ERROR out of memory storing object\r\n") : ScriptedShard::empty(command);
  });
  CountersConfig config;
  config.shards.push_back({"full", {"127.0.0.1", shard.port(), ""}, 1});
  CountingNode node(loop, config);
  ASSERT_TRUE(run_until(loop, [&] { return node.all_shards_reachable(); }));
  node.hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return node.metric("popgate_count_shard_refused_for_memory") >= 2; }))
      << "tried again at the next tick";
  EXPECT_EQ(node.column(LedgerColumn::kDelivered), 0U);
  EXPECT_GE(node.held(), 3U);
  // However often they were tried: peers must know that these are missing in what they read.
  EXPECT_TRUE(run_until(loop, [&] {
    const std::vector<ShardLag> lags = node.store().lag()->shards;
    return !lags.empty() && lags[0].waiting > milliseconds(300);
  }));
}

}  // namespace
}  // namespace popgate
