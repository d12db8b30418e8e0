// SPDX-License-Identifier: Apache-2.0
//
// Keys a second through MemcachedStore: three real memcached servers, straight and through a real nutcracker, each key
// one increment on a hot slot and whatever reads it still needs. Prints both, and their ratio.
//
//     build/release/tests/count_bench [rounds]
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/daemon/count/counting_node.h"
#include "tests/process/nutcracker.h"

namespace {

using namespace popgate;

constexpr std::size_t kKeys = 20'000;
// Until slots of the past are final and no longer read: settle after the shards were reached.
constexpr std::chrono::seconds kWarmUp{2};

double keys_a_second(EventLoop& loop, const CountersConfig& config, int rounds) {
  CountingNode node(loop, config);
  const bool up = run_until(loop, [&] { return node.all_shards_reachable(); });
  std::vector<Key> keys;
  for (std::size_t i = 0; i < kKeys; ++i) keys.push_back(test_key(i));
  const auto flush = [&] {
    node.hit(keys, 1);
    node.reports.clear();
    return run_until(loop, [&] { return node.store().idle(); });
  };
  const auto warm = std::chrono::steady_clock::now() + kWarmUp;
  while (std::chrono::steady_clock::now() < warm) {
    if (!up || !flush()) std::abort();
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < rounds; ++round) {
    if (!flush()) std::abort();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(kKeys) * rounds / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  spdlog::set_level(spdlog::level::warn);
  const auto servers = start_servers(3);
  const CountersConfig config = config_of(servers);
  std::vector<process::NutcrackerServer> behind;
  for (const ShardConfig& shard : config.shards) behind.push_back({shard.name, shard.address.port, shard.weight});
  process::Nutcracker nutcracker(behind);
  EventLoop loop;
  for (int pair = 0; pair < 3; ++pair) {  // in pairs: only the ratio of neighbours means something on a busy machine
    const double straight = keys_a_second(loop, config, rounds);
    const double proxied = keys_a_second(loop, through_proxy(config, nutcracker.port()), rounds);
    std::printf("straight %.0f keys/s, through twemproxy %.0f keys/s, ratio %.2f\n", straight, proxied,
                straight / proxied);
  }
  return 0;
}
