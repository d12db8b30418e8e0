// SPDX-License-Identifier: Apache-2.0
//
// MemcachedStore against real memcached servers, straight and through a real nutcracker.
#include "daemon/count/memcached_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/count/counter_key.h"
#include "tests/daemon/count/counting_node.h"
#include "tests/process/nutcracker.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

using process::Memcached;
using process::Nutcracker;
using process::NutcrackerServer;
using std::chrono::seconds;

std::vector<Key> test_keys(std::size_t count) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(test_key(i));
  return keys;
}

// No reply is too late on a busy machine, where nothing is meant to be late.
constexpr milliseconds kPatient{20'000};

/// Three servers, straight or through a proxy.
class Cluster : public ::testing::TestWithParam<bool> {
 protected:
  explicit Cluster(milliseconds timeout = kPatient) {
    config = config_of(servers);
    config.timeout = timeout;
    if (!GetParam()) return;
    std::vector<NutcrackerServer> behind;
    for (const ShardConfig& shard : config.shards) behind.push_back({shard.name, shard.address.port, shard.weight});
    nutcracker.emplace(behind, timeout * 3 / 4);
    config = through_proxy(config, nutcracker->port());
  }

  [[nodiscard]] std::unique_ptr<CountingNode> node(std::uint64_t seed = 1) {
    auto made = std::make_unique<CountingNode>(loop, config, seed);
    EXPECT_TRUE(run_until(loop, [&] { return made->all_shards_reachable(); }));
    return made;
  }
  [[nodiscard]] bool settles(CountingNode& counting) {
    return run_until(loop, [&] { return counting.store().idle(); });
  }

  void turn_the_loop() {
    int turns = 0;
    (void)run_until(loop, [&] { return ++turns > 2; });
  }

  std::vector<std::unique_ptr<Memcached>> servers = start_servers(3);
  std::optional<Nutcracker> nutcracker;
  CountersConfig config;
  EventLoop loop;
};

class ImpatientCluster : public Cluster {
 protected:
  ImpatientCluster() : Cluster(milliseconds(400)) {}
};

class SlowlyImpatientCluster : public Cluster {
 protected:
  SlowlyImpatientCluster() : Cluster(milliseconds(4000)) {}
};

void expect_every_hit_is_accounted(const CountingNode& node) {
  const LedgerRow row = node.row();
  EXPECT_EQ(row[LedgerColumn::kDrained], row[LedgerColumn::kDelivered] + row[LedgerColumn::kUncertain] +
                                             row[LedgerColumn::kDropped] + row[LedgerColumn::kExpired] + node.held());
}

TEST_P(Cluster, hits_of_a_new_key_are_delivered_and_reported_fresh) {
  const auto one = node();
  one->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return !one->reports.empty() && one->reports.back().fresh; }));
  EXPECT_EQ(one->reports.back().known(), 3u);
  EXPECT_EQ(one->column(LedgerColumn::kDelivered), 3u);
  EXPECT_EQ(total_in_memcached(servers, one->store().placement(), test_key(1)), 3u);
}

TEST_P(Cluster, a_node_sees_what_another_counted) {
  const auto one = node(1);
  const auto other = node(2);
  one->hit(test_key(1), 3);
  ASSERT_TRUE(settles(*one));
  other->hit(test_key(1), 4);
  ASSERT_TRUE(run_until(loop, [&] { return !other->reports.empty() && other->reports.back().fresh; }));
  EXPECT_EQ(other->reports.back().known(), 7u);
}

TEST_P(Cluster, slots_to_which_only_others_added_are_read) {
  const auto one = node(1);
  const auto other = node(2);
  const std::vector<Key> key = {test_key(1)};
  one->hit(key, 3, 1);
  one->hit(key, 2, 4);
  ASSERT_TRUE(settles(*one));
  other->hit(key, 4);
  ASSERT_TRUE(run_until(loop, [&] { return !other->reports.empty() && other->reports.back().fresh; }));
  EXPECT_EQ(other->reports.back().known(), 9u);
  EXPECT_EQ(other->reports.back().slots.size(), 3u);
}

TEST_P(Cluster, sums_are_exact_when_three_nodes_create_the_same_new_keys_at_once) {
  const std::vector<Key> keys = test_keys(2000);
  std::vector<std::unique_ptr<CountingNode>> nodes;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) nodes.push_back(node(seed));
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i]->hit(keys, i + 1);
  }
  for (const auto& one : nodes) {
    ASSERT_TRUE(settles(*one));
    EXPECT_EQ(one->column(LedgerColumn::kDelivered), one->column(LedgerColumn::kDrained));
  }
  for (const Key& key : {keys.front(), keys[777], keys.back()}) {
    EXPECT_EQ(total_in_memcached(servers, nodes[0]->store().placement(), key), 2u * (1 + 2 + 3));
  }
  EXPECT_EQ(total_in_memcached(servers, nodes[0]->store().placement(), keys), 2000u * 2 * (1 + 2 + 3));
}

/// Keys that placement puts on this shard, and whose slot does not end within the next five seconds.
std::vector<Key> keys_on(const Placement& placement, ShardIndex shard, std::size_t count) {
  const WindowShape shape = test_rules()->by_number(kTestRule)->window;
  const PopInstant now = PopClock::now();
  std::vector<Key> keys;
  for (std::uint64_t i = 0; keys.size() < count; ++i) {
    const KeySlots slots(shape, test_key(i));
    const bool slot_lasts = slots.slot_at(now) == slots.slot_at(now + seconds(5));
    if (slot_lasts && placement.shard_of(test_key(i)) == shard) keys.push_back(test_key(i));
  }
  return keys;
}

TEST_P(Cluster, a_killed_shard_loses_nothing_silently_and_counts_on_when_it_is_back) {
  const auto one = node();
  const std::vector<Key> keys = test_keys(300);
  one->hit(keys, 1);
  ASSERT_TRUE(settles(*one));
  servers[0]->kill();
  for (int i = 0; i < 50; ++i) {
    one->hit(keys, 1);
    turn_the_loop();
  }
  ASSERT_TRUE(run_until(loop, [&] { return !one->all_shards_reachable(); }));
  one->hit(keys, 1);
  EXPECT_GT(one->held(), 0u);
  expect_every_hit_is_accounted(*one);
  servers[0]->start();
  ASSERT_TRUE(settles(*one));
  expect_every_hit_is_accounted(*one);
  EXPECT_EQ(one->held(), 0u);
  EXPECT_EQ(one->column(LedgerColumn::kDropped), 0u);
  EXPECT_EQ(one->column(LedgerColumn::kExpired), 0u);
  EXPECT_EQ(one->column(LedgerColumn::kDrained), 300u * 52);

  // The shards that went on hold exactly what was delivered to them.
  std::vector<Key> elsewhere;
  for (const Key& key : keys) {
    if (one->store().placement().shard_of(key) != 0) elsewhere.push_back(key);
  }
  EXPECT_EQ(total_in_memcached(servers, one->store().placement(), elsewhere), elsewhere.size() * 52);
}

TEST_P(Cluster, a_shard_that_restarts_empty_is_seen_to_have_lost_counters) {
  const auto one = node();
  const std::vector<Key> keys = keys_on(one->store().placement(), 1, 10);
  one->hit(keys, 5);
  ASSERT_TRUE(settles(*one));
  ASSERT_TRUE(run_until(loop, [&] { return one->reports.size() == 10; }));
  EXPECT_EQ(one->metric("popgate_count_shard_losses"), 0);
  servers[1]->restart();
  ASSERT_TRUE(run_until(loop, [&] { return one->metric("popgate_count_shard_losses") == 1; }));
  one->reports.clear();
  one->hit(keys, 2);
  ASSERT_TRUE(run_until(loop, [&] { return one->reports.size() == 10; }));
  EXPECT_TRUE(one->reports.back().fresh);
  EXPECT_TRUE(one->reports.back().counters_lost);
  EXPECT_TRUE(one->store().counters_lost(keys[0], PopClock::now()));
  EXPECT_FALSE(one->store().counters_lost(test_key(1'000'000), PopClock::now())) << "nothing is known of this key";
  EXPECT_EQ(one->reports.back().known(), 5u) << "known is the largest total ever read";
  EXPECT_EQ(one->metric("popgate_count_shard_losses"), 1) << "what one loss explains is not another";
}

TEST_P(ImpatientCluster, a_shard_that_hangs_leaves_hits_uncertain_within_bounds) {
  const auto one = node();
  const Placement& placement = one->store().placement();
  const std::vector<Key> hanging = keys_on(placement, 2, 50);
  one->hit(hanging, 1);
  ASSERT_TRUE(settles(*one));
  servers[2]->freeze();
  one->hit(hanging, 1);  // on its way when nobody can know yet
  ASSERT_TRUE(run_until(loop, [&] { return one->column(LedgerColumn::kUncertain) > 0; }));
  for (int i = 0; i < 20; ++i) {
    one->hit(hanging, 1);  // waits here: nothing is sent to a shard that does not answer
    turn_the_loop();
  }
  expect_every_hit_is_accounted(*one);
  EXPECT_LE(one->column(LedgerColumn::kUncertain), 50u * 2);
  servers[2]->thaw();
  ASSERT_TRUE(settles(*one));
  expect_every_hit_is_accounted(*one);
  const std::uint64_t delivered = one->column(LedgerColumn::kDelivered);
  const std::uint64_t uncertain = one->column(LedgerColumn::kUncertain);
  EXPECT_EQ(delivered + uncertain, 50u * 22);
  const std::uint64_t counted = total_in_memcached(servers, placement, hanging);
  EXPECT_GE(counted, delivered);
  EXPECT_LE(counted, delivered + uncertain);
}

TEST_P(ImpatientCluster, slots_to_which_a_peer_added_late_are_read_again_once_it_is_heard) {
  const auto one = node(1);
  const auto late = node(2);
  const std::vector<Key> key = {test_key(1)};
  const auto known_to_one = [&] {
    one->reports.clear();
    one->hit(key, 1);
    EXPECT_TRUE(run_until(loop, [&] { return !one->reports.empty() && one->reports.back().fresh; }));
    return one->reports.back().known();
  };
  const auto tell = [&](bool heard) {
    const CountLag lag{.ring = one->store().placement().ring_id(), .shards = {}};
    const PeerLag peer{.node = "late", .heard = heard, .said_goodbye = false, .lag = lag};
    one->store().use_peer_lags(std::span(&peer, 1), PopClock::now());
  };
  tell(true);
  const HostInstant began = HostClock::now();
  ASSERT_TRUE(run_until(loop, [&] { return HostClock::now() - began > milliseconds(1200); })) << "settle, and some";
  EXPECT_EQ(known_to_one(), 1U);
  tell(false);  // it stands still
  late->hit(key, 5, 3);
  ASSERT_TRUE(settles(*late));
  tell(true);
  EXPECT_EQ(known_to_one(), 7U) << "in a slot that was final";
}

TEST_P(SlowlyImpatientCluster, healthy_shards_answer_while_one_hangs) {
  const auto one = node();
  const Placement& placement = one->store().placement();
  const Key hanging = keys_on(placement, 2, 1).front();
  const std::vector<Key> healthy = keys_on(placement, 0, 20);
  servers[2]->freeze();
  one->hit(hanging);
  std::size_t fresh = 0;
  one->on_report = [&](const Report& report) {
    if (report.fresh) ++fresh;
  };
  // Five round trips one after the other on a healthy shard, all before the hanging one is given up.
  for (std::size_t round = 1; round <= 5; ++round) {
    one->hit(healthy, 1);
    ASSERT_TRUE(run_until(loop, [&] { return fresh == round * healthy.size(); }));
  }
  EXPECT_EQ(one->column(LedgerColumn::kUncertain), 0u) << "the hanging shard was given up first";
  servers[2]->thaw();
  ASSERT_TRUE(settles(*one));
  expect_every_hit_is_accounted(*one);
}

TEST_P(Cluster, an_unreachable_shard_is_no_error_at_start_and_its_keys_are_reported_as_not_fresh) {
  servers[0]->kill();
  CountingNode one(loop, config);
  const std::vector<Key> keys = keys_on(one.store().placement(), 0, 3);
  one.hit(keys, 7);
  ASSERT_EQ(one.reports.size(), 3u) << "reported at once";
  EXPECT_FALSE(one.reports[0].fresh);
  EXPECT_EQ(one.reports[0].known(), 0u);
  EXPECT_EQ(one.reports[0].own_unsent(), 7u);
  servers[0]->start();
  ASSERT_TRUE(settles(one));
  EXPECT_EQ(one.column(LedgerColumn::kDelivered), 21u);
}

TEST_P(Cluster, a_node_whose_clock_is_off_sends_nothing_and_judges_its_own_hits) {
  const auto counting = node();
  counting->hit(test_key(1), 4);
  ASSERT_TRUE(settles(*counting));
  counting->store().hold_increments(Hold::kClockOff);
  counting->reports.clear();
  counting->hit(test_key(1), 3);
  ASSERT_FALSE(counting->reports.empty());  // reported at once, by what this node knows
  EXPECT_FALSE(counting->reports.back().fresh);
  EXPECT_EQ(counting->reports.back().own_unsent(), 3U);
  turn_the_loop();
  EXPECT_EQ(counting->column(LedgerColumn::kDelivered), 4U);
  counting->store().drop_unsent();
  counting->store().hold_increments(Hold::kNone);
  counting->store().tick(PopClock::now());
  ASSERT_TRUE(settles(*counting));
  EXPECT_EQ(counting->column(LedgerColumn::kDelivered), 4U);
  EXPECT_EQ(counting->column(LedgerColumn::kDropped), 3U) << "stamped by a clock that was off: never counted";
  EXPECT_EQ(counting->metric("popgate_count_hits_clock_off_dropped"), 3);
  counting->hit(test_key(1), 2);
  ASSERT_TRUE(settles(*counting));
  EXPECT_EQ(counting->column(LedgerColumn::kDelivered), 6U);
  expect_every_hit_is_accounted(*counting);
}

TEST_P(Cluster, answer_that_was_under_way_when_the_hold_began_is_not_fresh) {
  const auto counting = node();
  counting->hit(test_key(1), 4);
  counting->store().hold_increments(Hold::kUnjudged);
  ASSERT_TRUE(run_until(loop, [&] { return counting->column(LedgerColumn::kDelivered) == 4; }));
  ASSERT_TRUE(run_until(loop, [&] { return !counting->reports.empty(); }));
  EXPECT_EQ(counting->reports.back().known(), 4U);
  EXPECT_FALSE(counting->reports.back().fresh) << "read by a clock that nobody has judged since";
}

TEST_P(Cluster, what_waits_for_the_clock_to_be_judged_is_counted_once_and_each_hit_in_its_own_slot) {
  CountingNode counting(loop, config);
  counting.store().hold_increments(Hold::kUnjudged);
  ASSERT_TRUE(run_until(loop, [&] { return counting.all_shards_reachable(); }));
  const std::vector<Key> key = {test_key(1)};
  counting.hit(key, 2, 3);
  counting.hit(key, 3);
  turn_the_loop();
  EXPECT_EQ(counting.column(LedgerColumn::kDelivered), 0U);
  EXPECT_EQ(counting.held(), 5U);
  EXPECT_FALSE(counting.store().idle());
  EXPECT_TRUE(counting.reports.back().clock_in_doubt);
  counting.store().hold_increments(Hold::kNone);
  ASSERT_TRUE(settles(counting));
  EXPECT_EQ(counting.column(LedgerColumn::kDelivered), 5U);
  EXPECT_EQ(total_in_memcached(servers, counting.store().placement(), test_key(1)), 5U);
  ASSERT_TRUE(run_until(loop, [&] { return counting.reports.back().fresh; }));
  EXPECT_FALSE(counting.reports.back().clock_in_doubt);
  ASSERT_EQ(counting.reports.back().slots.size(), 2U);
  EXPECT_EQ(counting.reports.back().slots[0].known, 2U);
  EXPECT_EQ(counting.reports.back().slots[1].known, 3U);
  expect_every_hit_is_accounted(counting);
}

TEST_P(Cluster, totals_beyond_31_and_32_bits_are_read_whole) {
  const auto one = node(1);
  const auto other = node(2);
  const std::uint64_t large = std::uint64_t{5} << 40;
  one->hit(test_key(1), large);
  ASSERT_TRUE(settles(*one));
  other->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return !other->reports.empty() && other->reports.back().fresh; }));
  EXPECT_EQ(other->reports.back().known(), large + 3);
}

TEST_P(Cluster, counters_expire_after_their_window_by_memcached_s_own_clock) {
  const auto one = node();
  one->hit(test_key(1));
  ASSERT_TRUE(settles(*one));
  const Placement& placement = one->store().placement();
  const auto& server = *servers[placement.shard_of(test_key(1))];
  // `mg KEY t` answers with the seconds left: 60 + 10 + 0.04, rounded up, and the margins of counter_expiry.
  const PopInstant now = PopClock::now();
  const WindowShape shape = test_rules()->by_number(kTestRule)->window;
  const KeySlots slots(shape, test_key(1));
  CounterNames names(placement.ring_id(), test_key(1), shape.slot);
  long left = -1;
  for (SlotIndex slot = slots.first_touching(now); slot <= slots.last_touching(now); ++slot) {
    const std::string reply =
        process::TextClient(server.port()).ask("mg " + std::string(names.of(slot)) + " t\r\n", "\r\n");
    if (reply.starts_with("HD t")) left = std::stol(reply.substr(4));
  }
  EXPECT_GE(left, 71);
  EXPECT_LE(left, 90);
}

TEST_P(Cluster, with_room_for_few_keys_every_hit_is_still_accounted) {
  CountingNode one(loop, config, 1, 10);
  one.hit(test_keys(50), 1);  // before any shard answers: 10 keys find room
  EXPECT_EQ(one.column(LedgerColumn::kDropped), 40u);
  ASSERT_TRUE(settles(one));
  one.hit(keys_on(one.store().placement(), 1, 60), 1);
  ASSERT_TRUE(settles(one));
  expect_every_hit_is_accounted(one);
  EXPECT_EQ(one.held(), 0u);
}

TEST(MemcachedStore, a_killed_twemproxy_loses_nothing_silently) {
  auto servers = start_servers(3);
  CountersConfig config = config_of(servers);
  std::vector<NutcrackerServer> behind;
  for (const ShardConfig& shard : config.shards) behind.push_back({shard.name, shard.address.port, shard.weight});
  config.timeout = kPatient;
  Nutcracker nutcracker(behind, kPatient * 3 / 4);
  EventLoop loop;
  CountingNode one(loop, through_proxy(config, nutcracker.port()));
  ASSERT_TRUE(run_until(loop, [&] { return one.all_shards_reachable(); }));
  const std::vector<Key> keys = test_keys(500);
  int flushes = 0;
  const auto flush = [&] {
    one.hit(keys, 1);
    ++flushes;
    int turns = 0;
    (void)run_until(loop, [&] { return ++turns > 3; });
  };
  for (int i = 0; i < 20; ++i) flush();
  one.hit(keys, 1);
  ++flushes;
  nutcracker.kill();  // with a batch of every shard given to the kernel or about to be
  for (int i = 0; i < 20; ++i) flush();
  expect_every_hit_is_accounted(one);
  nutcracker.start();
  ASSERT_TRUE(run_until(loop, [&] { return one.store().idle(); }));
  expect_every_hit_is_accounted(one);
  EXPECT_EQ(one.column(LedgerColumn::kDropped) + one.column(LedgerColumn::kExpired), 0u);
  const std::uint64_t delivered = one.column(LedgerColumn::kDelivered);
  const std::uint64_t uncertain = one.column(LedgerColumn::kUncertain);
  EXPECT_EQ(delivered + uncertain, 500u * static_cast<std::uint64_t>(flushes));
  const std::uint64_t counted = total_in_memcached(servers, one.store().placement(), keys);
  EXPECT_GE(counted, delivered);
  EXPECT_LE(counted, delivered + uncertain);
  EXPECT_EQ(one.metric("popgate_count_shard_losses"), 0) << "the shards kept their counters";
}

std::string way(const ::testing::TestParamInfo<bool>& proxied) {
  return proxied.param ? "through_twemproxy" : "straight";
}
INSTANTIATE_TEST_SUITE_P(Memcached, Cluster, ::testing::Bool(), way);
INSTANTIATE_TEST_SUITE_P(Memcached, ImpatientCluster, ::testing::Bool(), way);
INSTANTIATE_TEST_SUITE_P(Memcached, SlowlyImpatientCluster, ::testing::Bool(), way);

}  // namespace
}  // namespace popgate
