// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/count/counting_node.h"

#include <event2/event.h>

#include <charconv>
#include <stdexcept>
#include <string>

#include "daemon/count/counter_key.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

constexpr std::chrono::milliseconds kFlushInterval{10};
const WindowShape kShape = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));

}  // namespace

SharedRules test_rules() {
  Rule rule;
  rule.name = "test";
  rule.id = 77;
  rule.number = kTestRule;
  rule.limit = 1'000'000'000;
  rule.window = kShape;
  return std::make_shared<const RuleSet>(std::vector<Rule>{rule});
}

std::vector<std::unique_ptr<process::Memcached>> start_servers(std::size_t count) {
  std::vector<std::unique_ptr<process::Memcached>> servers;
  for (std::size_t i = 0; i < count; ++i) servers.push_back(std::make_unique<process::Memcached>());
  return servers;
}

CountersConfig config_of(const std::vector<std::unique_ptr<process::Memcached>>& servers) {
  CountersConfig config;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    config.shards.push_back({"shard-" + std::to_string(i), {"127.0.0.1", servers[i]->port(), ""}, 1});
  }
  return config;
}

CountersConfig through_proxy(CountersConfig config, std::uint16_t port) {
  config.proxy = Endpoint{"127.0.0.1", port, ""};
  return config;
}

std::uint64_t Report::known() const {
  std::uint64_t sum = 0;
  for (const SlotCount& slot : slots) sum += slot.known;
  return sum;
}

std::uint64_t Report::own_unsent() const {
  std::uint64_t sum = 0;
  for (const SlotCount& slot : slots) sum += slot.unsent;
  return sum;
}

CountingNode::CountingNode(EventLoop& loop, const CountersConfig& config, std::uint64_t seed, std::uint32_t keys_max)
    : sockets_(loop), ledger_(Ledger::in_memory()), flush_timer_(loop, [this] { store_->tick(PopClock::now()); }) {
  if (ledger_->number_for(test_rules()->all().front().id) != kTestRule) throw std::runtime_error("rule number");
  MemcachedStore::Setup setup;
  setup.reactor = &loop;
  setup.transport = &sockets_;
  setup.ledger = ledger_.get();
  setup.rules = test_rules();
  setup.flush_interval = kFlushInterval;
  setup.keys_max = keys_max;
  setup.seed = seed;
  auto store = MemcachedStore::make(config, std::move(setup), [this](const SlotTotals& totals, PopInstant) {
    reports.push_back({totals.key,
                       {totals.slots.begin(), totals.slots.end()},
                       totals.fresh,
                       totals.counters_lost,
                       totals.degraded,
                       totals.clock_in_doubt});
    if (on_report) on_report(reports.back());
  });
  if (!store) throw std::runtime_error(store.error());
  store_ = *std::move(store);
  flush_timer_.start_every(kFlushInterval);
}

void CountingNode::hit(const std::vector<Key>& keys, std::uint64_t hits, SlotIndex slots_ago) {
  const PopInstant now = PopClock::now();
  std::vector<HitSum> sums;
  for (const Key& key : keys) sums.push_back({key, kTestRule, KeySlots(kShape, key).slot_at(now) - slots_ago, hits});
  ledger_->add(kTestRule, LedgerColumn::kDrained, hits * keys.size());
  store_->submit(sums, now);
}

double CountingNode::metric(std::string_view name) const {
  double sum = 0;
  store_->visit([&](const Metric& metric) {
    if (metric.name == name) sum += metric.value;
  });
  return sum;
}

std::uint64_t CountingNode::held() const {
  return static_cast<std::uint64_t>(metric("popgate_count_hits_unsent") + metric("popgate_count_hits_in_flight"));
}

bool CountingNode::all_shards_reachable() const {
  bool all = true;
  store_->visit([&](const Metric& metric) {
    if (metric.name == "popgate_count_shard_reachable" && metric.value == 0) all = false;
  });
  return all;
}

bool run_until(EventLoop& loop, const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  bool too_late = false;
  Timer timer(loop, [&] { too_late = true; });
  timer.start_once(deadline);
  while (!condition()) {
    if (too_late) return false;
    event_base_loop(loop.base(), EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY);
  }
  return true;
}

std::uint64_t total_in_memcached(const std::vector<std::unique_ptr<process::Memcached>>& servers,
                                 const Placement& placement, const Key& key) {
  return total_in_memcached(servers, placement, std::vector<Key>{key});
}

std::uint64_t total_in_memcached(const std::vector<std::unique_ptr<process::Memcached>>& servers,
                                 const Placement& placement, const std::vector<Key>& keys) {
  const PopInstant now = PopClock::now();
  std::vector<std::string> gets(servers.size());
  for (const Key& key : keys) {
    const KeySlots slots(kShape, key);
    CounterNames names(placement.ring_id(), key, kShape.slot);
    for (SlotIndex slot = slots.first_touching(now); slot <= slots.last_touching(now); ++slot) {
      gets[placement.shard_of(key)].append(" ").append(names.of(slot));
    }
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (gets[i].empty()) continue;
    const std::string reply = process::TextClient(servers[i]->port()).ask("get" + gets[i] + "\r\n", "END\r\n");
    for (std::size_t at = reply.find("VALUE "); at != std::string::npos; at = reply.find("VALUE ", at + 1)) {
      const char* const digits = reply.data() + reply.find("\r\n", at) + 2;
      std::uint64_t value = 0;
      std::from_chars(digits, reply.data() + reply.size(), value);
      sum += value;
    }
  }
  return sum;
}

}  // namespace popgate
