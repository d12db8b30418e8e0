// SPDX-License-Identifier: Apache-2.0
//
// A real memcached that fails and comes back: when its keys are reported as degraded, and that hits held meanwhile are
// counted once.
#include <gtest/gtest.h>

#include "tests/daemon/count/counting_node.h"

namespace popgate {
namespace {

class DegradedShard : public ::testing::Test {
 protected:
  DegradedShard() {
    config.timeout = milliseconds(200);
    node = std::make_unique<CountingNode>(loop, config);
    ready = run_until(loop, [&] { return node->all_shards_reachable(); });
  }
  bool is_degraded() const { return node->store().shards().front().degraded; }
  double metric(std::string_view name) const { return node->metric(name); }

  EventLoop loop;
  std::vector<std::unique_ptr<process::Memcached>> servers = start_servers(1);
  CountersConfig config = config_of(servers);
  std::unique_ptr<CountingNode> node;
  bool ready = false;
};

TEST_F(DegradedShard, is_entered_and_left_with_delay_and_hits_held_meanwhile_are_counted_once) {
  ASSERT_TRUE(ready);
  EXPECT_FALSE(is_degraded());
  const HostInstant killed_at = HostClock::now();
  servers[0]->kill();
  ASSERT_TRUE(run_until(loop, [&] { return is_degraded(); }));
  EXPECT_GE(HostClock::now() - killed_at, DegradedState::kFailingMax);
  node->hit(test_key(1), 5);
  EXPECT_TRUE(node->reports.back().degraded);
  EXPECT_FALSE(node->reports.back().fresh);
  EXPECT_EQ(node->reports.back().own_unsent(), 5U);
  EXPECT_TRUE(node->store().is_degraded(test_key(2))) << "also of a key that is not held";

  servers[0]->start();
  ASSERT_TRUE(run_until(loop, [&] { return node->store().idle(); }));
  const HostInstant back_at = HostClock::now();
  EXPECT_EQ(total_in_memcached(servers, node->store().placement(), test_key(1)), 5U);
  EXPECT_TRUE(is_degraded()) << "it has not answered steadily yet";
  ASSERT_TRUE(run_until(loop, [&] { return !is_degraded(); }));
  EXPECT_GE(HostClock::now() - back_at, DegradedState::kSteadyMin - milliseconds(500));
  node->hit(test_key(1), 1);
  ASSERT_TRUE(run_until(loop, [&] { return node->store().idle() && node->reports.back().fresh; }));
  EXPECT_FALSE(node->reports.back().degraded);
  EXPECT_EQ(node->reports.back().known(), 6U);
  EXPECT_EQ(metric("popgate_count_shard_degraded_entered"), 1);
  EXPECT_EQ(metric("popgate_count_shard_degraded_left"), 1);
}

TEST_F(DegradedShard, peers_are_told_how_long_hits_wait_and_how_many_are_uncertain) {
  ASSERT_TRUE(ready);
  EXPECT_TRUE(node->store().lag()->shards.empty()) << "a shard that keeps up has nothing to tell";
  servers[0]->freeze();
  node->hit(test_key(1), 5);  // on its way, and never answered
  ASSERT_TRUE(run_until(loop, [&] { return node->column(LedgerColumn::kUncertain) == 5; }));
  node->hit(test_key(2), 1);  // waits here
  const HostInstant waits_since = HostClock::now();
  ASSERT_TRUE(run_until(loop, [&] { return HostClock::now() - waits_since > milliseconds(100); }));
  const CountLag lag = *node->store().lag();
  ASSERT_EQ(lag.shards.size(), 1U);
  EXPECT_EQ(lag.shards[0].shard, 0);
  EXPECT_GE(lag.shards[0].waiting, milliseconds(100));
  EXPECT_EQ(lag.shards[0].uncertain_most, 5U);
  EXPECT_GT(lag.shards[0].uncertain_until, PopClock::now() + std::chrono::seconds(50));
  servers[0]->thaw();
  ASSERT_TRUE(run_until(loop, [&] { return node->store().idle(); }));
  ASSERT_TRUE(run_until(loop, [&] { return node->store().lag()->shards[0].waiting.count() == 0; }));
}

TEST_F(DegradedShard, is_at_once_while_the_clock_is_off_and_not_while_it_waits_to_be_judged) {
  ASSERT_TRUE(ready);
  node->store().hold_increments(Hold::kClockOff);
  EXPECT_TRUE(is_degraded());
  node->hit(test_key(1), 5);
  EXPECT_TRUE(node->reports.back().degraded);
  EXPECT_EQ(metric("popgate_count_shard_degraded"), 1);
  node->store().hold_increments(Hold::kUnjudged);
  EXPECT_FALSE(is_degraded());
  node->hit(test_key(1), 5);
  EXPECT_FALSE(node->reports.back().degraded);
  node->store().hold_increments(Hold::kNone);
  EXPECT_FALSE(is_degraded());
}

}  // namespace
}  // namespace popgate
