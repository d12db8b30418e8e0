// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memcached_store.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/collect/ledger.h"
#include "daemon/config.h"
#include "daemon/socket_address.h"

namespace popgate {

Result<std::unique_ptr<MemcachedStore>> MemcachedStore::make(const CountersConfig& config, Setup setup,
                                                             TotalsFunction totals) {
  Result<Placement> placement = Placement::make(config.shards);
  if (!placement) return Error{placement.error()};
  std::unique_ptr<MemcachedStore> store(new MemcachedStore(std::move(setup), *std::move(placement), std::move(totals)));
  if (const Status found = store->look_up(config); !found) return Error{found.error()};
  if (const Status added = store->add_shards(config); !added) return Error{added.error()};
  return store;
}

MemcachedStore::MemcachedStore(Setup setup, Placement placement, TotalsFunction totals)
    : setup_(std::move(setup)),
      placement_(std::move(placement)),
      totals_(std::move(totals)),
      random_(setup_.seed),
      windows_(
          {setup_.keys_max, setup_.keys_max * kSlotsPerKey},
          [this](const Key& key) { return placement_.shard_of(key); }, *setup_.ledger) {}

// Behind twemproxy the shards' own addresses serve only ring checks and statistics.
Status MemcachedStore::look_up(const CountersConfig& config) {
  timeout_ = config.timeout;
  if (config.proxy) {
    Result<SocketAddress> address = SocketAddress::resolve(*config.proxy);
    if (!address) return Error{"counters.proxy: " + address.error()};
    proxy_ = *std::move(address);
  }
  for (const ShardConfig& shard : config.shards) {
    Result<SocketAddress> address = SocketAddress::resolve(shard.address);
    if (!address && !config.proxy) return Error{"counters.shards: " + shard.name + ": " + address.error()};
    if (!address) spdlog::warn("count: shard {}: {}; it is not watched for evictions", shard.name, address.error());
    addresses_.push_back(address ? *std::move(address) : SocketAddress{});
  }
  return {};
}

Status MemcachedStore::add_shards(const CountersConfig& config) {
  for (std::size_t i = 0; i < config.shards.size(); ++i) {
    const ShardConfig& shard = config.shards[i];
    Result<std::string> tag = placement_.tag_on(static_cast<ShardIndex>(i));
    if (!tag) return Error{tag.error()};
    Shard::Setup shard_setup{
        .reactor = setup_.reactor,
        .transport = setup_.transport,
        .name = shard.name,
        .address = proxy_ ? *proxy_ : addresses_[i],
        .ring = placement_.ring_id(),
        .generation_tag = *std::move(tag),
        .timeout = config.timeout,
        .batches_in_flight = std::max(config.batches_in_flight, 2U),
        .batch_keys_max = std::max(config.batch_keys_max, 1U),
        .settle = setup_.flush_interval + 2 * config.timeout + 2 * kMeshDelay,
    };
    shards_.push_back(
        std::make_unique<Shard>(std::move(shard_setup), windows_, random_,
                                [this](WindowIndex index, bool fresh, PopInstant now) { report(index, fresh, now); }));
    eviction_watches_.push_back(std::make_unique<EvictionWatch>(
        *setup_.reactor, *setup_.transport, addresses_[i], config.timeout,
        [watched = shards_.back().get()](std::uint64_t items) { watched->items_evicted(items); }));
    spdlog::info("count: shard {} of {}: {}, weight {}, at {}{}", i + 1, config.shards.size(), shard.name, shard.weight,
                 shard.address.text(), config.proxy ? ", through twemproxy at " + config.proxy->text() : "");
  }
  spdlog::info("count: {} shards on ring {:08x} (weighted ketama over their names)", shards_.size(),
               placement_.ring_id());
  return {};
}

std::unique_ptr<RingCheck> MemcachedStore::check_ring(RingCheck::DoneFunction done) {
  RingCheck::Setup setup;
  setup.reactor = setup_.reactor;
  setup.transport = setup_.transport;
  setup.placement = &placement_;
  for (const auto& shard : shards_) setup.names.push_back(shard->name());
  setup.addresses = addresses_;
  setup.proxy = proxy_;
  setup.timeout = timeout_;
  setup.seed = random_();
  return std::make_unique<RingCheck>(std::move(setup), std::move(done));
}

void MemcachedStore::submit(std::span<const HitSum> sums, PopInstant now) {
  submitted_.clear();
  for (const HitSum& sum : sums) {
    const Rule* const rule = setup_.rules->by_number(sum.rule);
    if (rule == nullptr) {
      unknown_rule_hits_ += sum.hits;
      setup_.ledger->add(sum.rule, LedgerColumn::kDropped, sum.hits);
      continue;
    }
    const WindowIndex index = windows_.take(sum, rule->window, now);
    if (index == kNoWindow) continue;
    shards_[windows_.at(index).shard]->add_due(index);
    submitted_.push_back(index);
  }
  for (const auto& shard : shards_) shard->pump(now);
  report_waiting(now);
}

// The keys whose hits still wait here: their shard does not answer, or is busy.
void MemcachedStore::report_waiting(PopInstant now) {
  std::vector<WindowIndex> waiting = std::move(submitted_);
  std::erase_if(waiting, [this](WindowIndex index) { return windows_.at(index).unsent == 0; });
  std::sort(waiting.begin(), waiting.end());
  waiting.erase(std::unique(waiting.begin(), waiting.end()), waiting.end());
  for (const WindowIndex index : waiting) report(index, false, now);
  submitted_ = std::move(waiting);
}

void MemcachedStore::report(WindowIndex index, bool fresh, PopInstant now) {
  const KeyWindow& window = windows_.at(index);
  const Shard& shard = *shards_[window.shard];
  KeyWindows::list_slots(window, slot_counts_);
  totals_({.key = window.key,
           .rule = window.rule,
           .slots = slot_counts_,
           .fresh = fresh,
           .counters_lost = shard.counters_lost(window.shape, now),
           .degraded = shard.is_degraded()},
          now);
}

void MemcachedStore::tick(PopInstant now) {
  for (const auto& shard : shards_) shard->tick(now);
  windows_.sweep(kSweptPerTick, now);
}

void MemcachedStore::hold_increments(bool hold) {
  for (const auto& shard : shards_) shard->hold(hold);
}

std::vector<SlotCount> MemcachedStore::slots_of(const Key& key) const {
  std::vector<SlotCount> slots;
  const WindowIndex index = windows_.find(key);
  if (index != kNoWindow) KeyWindows::list_slots(windows_.at(index), slots);
  return slots;
}

bool MemcachedStore::counters_lost(const Key& key, PopInstant now) const {
  const WindowIndex index = windows_.find(key);
  if (index == kNoWindow) return false;
  const KeyWindow& window = windows_.at(index);
  return shards_[window.shard]->counters_lost(window.shape, now);
}

bool MemcachedStore::is_degraded(const Key& key) const {
  const WindowIndex index = windows_.find(key);
  return shards_[index == kNoWindow ? placement_.shard_of(key) : windows_.at(index).shard]->is_degraded();
}

bool MemcachedStore::idle() const { return windows_.unsent_hits() == 0 && windows_.in_flight_hits() == 0; }

std::vector<ShardStatus> MemcachedStore::shards() const {
  std::vector<ShardStatus> listed;
  for (const auto& shard : shards_)
    listed.push_back({.name = shard->name(), .reachable = shard->is_reachable(), .degraded = shard->is_degraded()});
  return listed;
}

void MemcachedStore::visit(const MetricVisitor& visitor) const {
  windows_.visit(visitor);
  visitor({"popgate_count_unknown_rule_hits_dropped",
           "hits",
           "Hits under a rule number that no rule has.",
           static_cast<double>(unknown_rule_hits_),
           true,
           {},
           {}});
  for (const auto& shard : shards_) visit_figures(shard->figures(), shard->name(), visitor);
}

}  // namespace popgate
