// SPDX-License-Identifier: Apache-2.0
//
// Shards that hang, come back empty, or have too little memory: no hit is counted twice, and where the counters can no
// longer be believed the upper bound says so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"
#include "tests/process/test_scale.h"
#include "tests/process/traffic.h"

namespace popgate::process {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr char kCountOnly[] = "  - {name: all, key: [client_ip], limit: 1000000000, window: 1h, mitigate: 1m}\n";

json rate_of(const Node& node, const std::string& client) {
  return node.get("/explain?rule=all&value=" + client)["rate"];
}

bool settled(Pop& pop) {
  return eventually([&] { return pop.node(0).ready() && total_account(pop, "all").pending == 0; },
                    std::chrono::seconds(30));
}

// What is timed out may be applied when the shard goes on, in part: uncertain, and sent no second time.
TEST(PopMemcached, shard_stopped_behind_nutcracker_holds_up_no_other_and_nothing_is_counted_twice) {
  const int rounds = kFullScale ? 10 : 4;
  Pop pop({.nodes = 1, .shards = 3, .rules = kCountOnly, .more = "flush_interval: 5ms\n"});
  Traffic traffic(pop.node(0), {.clients = 120});
  std::uint64_t applied_late = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Memcached& shard = pop.shard(static_cast<std::size_t>(round) % pop.shards());
    traffic.resume();
    ASSERT_TRUE(eventually([&, from = traffic.sent()] { return traffic.sent() > from + 200; }));
    shard.freeze();
    ASSERT_TRUE(eventually([&] { return !pop.node(0).ready(); })) << "nobody noticed";
    const std::uint64_t delivered = account(pop.node(0), "all").delivered;
    ASSERT_TRUE(eventually([&] { return account(pop.node(0), "all").delivered > delivered + 200; }))
        << "the other shards wait for the one that hangs";
    traffic.pause();
    const Account hanging = account(pop.node(0), "all");
    shard.thaw();
    ASSERT_TRUE(settled(pop));
    const Account now = account(pop.node(0), "all");
    ASSERT_EQ(now.recorded, traffic.sent());
    ASSERT_TRUE(now.adds_up());
    ASSERT_EQ(now.lost + now.dropped + now.expired, 0U);
    const std::uint64_t counted = pop.counters_sum();
    ASSERT_GE(counted, now.delivered);
    ASSERT_LE(counted, now.delivered + now.uncertain) << "a hit was counted twice";
    EXPECT_GT(hanging.uncertain, 0U);
    applied_late = counted - now.delivered;
  }
  std::cout << applied_late << " of " << account(pop.node(0), "all").uncertain << " uncertain hits were applied\n";
}

TEST(PopMemcached, shard_that_comes_back_empty_makes_the_upper_bound_unknown_and_keeps_the_lower) {
  Pop pop({.nodes = 2, .shards = 1, .rules = kCountOnly});
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  Worker other(pop.node(1));
  ASSERT_TRUE(other.attach());
  for (int i = 0; i < 15; ++i) worker.request("203.0.113.7");
  ASSERT_TRUE(settled(pop));
  for (int i = 0; i < 2; ++i) {  // from its second batch on it knows the shard's generation
    other.request("203.0.113.8");
    ASSERT_TRUE(settled(pop));
  }
  const auto hi_is_known = [&] {
    const json rate = rate_of(pop.node(0), "203.0.113.7");
    return rate.is_object() && rate["hi"].is_number();
  };
  // The very first contact with a shard without a generation key is a loss, too: so are its counters unknown at first.
  EXPECT_FALSE(hi_is_known());
  const std::uint64_t losses = static_cast<std::uint64_t>(pop.node(0).metric("popgate_count_shard_losses_total"));
  pop.shard(0).restart();
  ASSERT_TRUE(eventually([&] { return pop.node(0).ready(); }));
  for (int i = 0; i < 3; ++i) worker.request("203.0.113.7");
  ASSERT_TRUE(settled(pop));
  const json rate = rate_of(pop.node(0), "203.0.113.7");
  EXPECT_TRUE(rate["hi"].is_null()) << rate.dump();
  EXPECT_EQ(rate["lo"], 15) << "the largest total that was ever read, and no sum over the loss";
  EXPECT_GT(pop.node(0).metric("popgate_count_shard_losses_total"), static_cast<double>(losses));
  EXPECT_NE(pop.node(0).process().output().find("lost counters"), std::string::npos);
  ASSERT_TRUE(eventually([&] { return pop.node(1).metric("popgate_count_shard_losses_total") > 0; }))
      << "the other node, which counts other clients there, knows it too";
}

// Two megabytes hold some 15,000 counters; 60,000 clients need four times as much.
TEST(PopMemcached, memory_pressure_is_noticed_and_makes_the_upper_bound_unknown) {
  constexpr int kClients = 60'000;
  Pop pop({.nodes = 1,
           .shards = 1,
           .proxy = false,
           .rules = "  - {name: all, key: [client_ip], limit: 1000000, window: 6s, mitigate: 1m}\n",
           .shard_megabytes = 2});
  Traffic traffic(pop.node(0), {.clients = kClients, .lot = 100});
  traffic.resume();
  ASSERT_TRUE(eventually([&] { return pop.node(0).metric("popgate_count_shard_evictions_total") > 0; },
                         std::chrono::seconds(30)));
  traffic.pause();
  ASSERT_TRUE(settled(pop));
  const Account now = account(pop.node(0), "all");
  EXPECT_EQ(now.recorded, traffic.sent());
  EXPECT_TRUE(now.adds_up());
  EXPECT_LE(pop.counters_sum(), now.delivered + now.uncertain);
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  worker.request("203.0.113.7");
  ASSERT_TRUE(settled(pop));
  EXPECT_TRUE(rate_of(pop.node(0), "203.0.113.7")["hi"].is_null());
  EXPECT_NE(pop.node(0).process().output().find("evicted items: give it more memory"), std::string::npos);
}

}  // namespace
}  // namespace popgate::process
