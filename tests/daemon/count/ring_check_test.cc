// SPDX-License-Identifier: Apache-2.0
//
// The check of a live ring, against real servers: it must tell a ring that agrees from one that does not.
#include "daemon/count/ring_check.h"

#include <gtest/gtest.h>

#include "tests/daemon/count/counting_node.h"
#include "tests/process/nutcracker.h"

namespace popgate {
namespace {

using process::Nutcracker;
using process::NutcrackerServer;

class RingCheckTest : public ::testing::Test {
 protected:
  RingCheckTest() { config.timeout = std::chrono::seconds(5); }  // patient on a busy machine
  [[nodiscard]] RingCheckReport check(const CountersConfig& asked) {
    CountingNode node(loop, asked);
    std::optional<RingCheckReport> report;
    const auto running = node.store().check_ring([&](const RingCheckReport& done) { report = done; });
    EXPECT_FALSE(report) << "never from within the call";
    EXPECT_TRUE(run_until(loop, [&] { return report.has_value(); }));
    return report.value_or(RingCheckReport{});
  }
  [[nodiscard]] std::vector<NutcrackerServer> behind() const {
    std::vector<NutcrackerServer> out;
    for (const ShardConfig& shard : config.shards) out.push_back({shard.name, shard.address.port, shard.weight});
    return out;
  }

  std::vector<std::unique_ptr<process::Memcached>> servers = start_servers(3);
  CountersConfig config = config_of(servers);
  EventLoop loop;
};

TEST_F(RingCheckTest, straight_each_shard_that_answers_agrees) {
  const RingCheckReport report = check(config);
  EXPECT_TRUE(report.agrees());
  EXPECT_FALSE(report.through_proxy);
  ASSERT_EQ(report.shards.size(), 3u);
  for (const RingCheckShard& shard : report.shards) EXPECT_EQ(shard.agreeing, 128u) << shard.name << shard.fault;
}

TEST_F(RingCheckTest, a_proxy_with_the_same_names_and_weights_agrees) {
  config.shards[1].weight = 3;
  Nutcracker nutcracker(behind(), std::chrono::seconds(4));
  const RingCheckReport report = check(through_proxy(config, nutcracker.port()));
  EXPECT_TRUE(report.agrees());
  EXPECT_TRUE(report.through_proxy);
}

TEST_F(RingCheckTest, a_proxy_without_our_weights_differs) {
  Nutcracker nutcracker(behind(), std::chrono::seconds(4));
  config.shards[1].weight = 3;
  const RingCheckReport report = check(through_proxy(config, nutcracker.port()));
  EXPECT_FALSE(report.agrees());
  std::uint32_t differing = 0;
  for (const RingCheckShard& shard : report.shards) {
    differing += shard.differing;
    EXPECT_EQ(shard.unreachable, 0u);
  }
  EXPECT_GT(differing, 0u);
}

TEST_F(RingCheckTest, a_proxy_with_two_names_swapped_differs) {
  auto swapped = behind();
  std::swap(swapped[0].name, swapped[1].name);
  Nutcracker nutcracker(swapped, std::chrono::seconds(4));
  const RingCheckReport report = check(through_proxy(config, nutcracker.port()));
  EXPECT_EQ(report.shards[0].differing, 128u);
  EXPECT_EQ(report.shards[1].differing, 128u);
  EXPECT_EQ(report.shards[2].agreeing, 128u);
}

TEST_F(RingCheckTest, a_dead_shard_is_unreachable_and_nothing_is_said_about_placement) {
  Nutcracker nutcracker(behind(), std::chrono::seconds(4));
  servers[2]->kill();
  for (const CountersConfig& way : {config, through_proxy(config, nutcracker.port())}) {
    const RingCheckReport report = check(way);
    EXPECT_FALSE(report.agrees());
    EXPECT_EQ(report.shards[2].unreachable, 128u);
    EXPECT_FALSE(report.shards[2].fault.empty());
    EXPECT_EQ(report.shards[0].agreeing, 128u);
    EXPECT_EQ(report.shards[0].differing + report.shards[1].differing + report.shards[2].differing, 0u);
  }
}

TEST_F(RingCheckTest, a_hanging_shard_ends_the_check_in_bounded_time) {
  config.timeout = milliseconds(300);
  servers[2]->freeze();
  const RingCheckReport report = check(config);
  EXPECT_EQ(report.shards[2].unreachable, 128u);
}

TEST_F(RingCheckTest, a_dead_proxy_is_unreachable) {
  Nutcracker nutcracker(behind(), std::chrono::seconds(4));
  nutcracker.kill();
  const RingCheckReport report = check(through_proxy(config, nutcracker.port()));
  for (const RingCheckShard& shard : report.shards) EXPECT_EQ(shard.unreachable, 128u);
}

}  // namespace
}  // namespace popgate
