// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_ring.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/config.h"
#include "daemon/count/counter_key.h"

namespace popgate {

Result<std::unique_ptr<CounterRing>> CounterRing::make(const RingConfig& ring, const CountersConfig& counters,
                                                       const Setup& setup, const Shard::ReportFunction& report) {
  const std::string_view field = setup.reads_only ? "counters.also_read" : "counters";
  Result<Placement> placement = Placement::make(ring.shards);
  if (!placement) return Error{placement.error()};
  std::unique_ptr<CounterRing> made(new CounterRing(setup, *std::move(placement)));
  if (const Status found = made->look_up(ring, field); !found) return Error{found.error()};
  if (const Status added = made->add_shards(ring, counters, report); !added) return Error{added.error()};
  spdlog::info("count: {} {} shards on ring {} (weighted ketama over their names)",
               setup.reads_only ? "also reading" : "counting on", made->shards_.size(),
               ring_text(made->placement_.ring_id()));
  if (made->proxy_) made->check_later();
  return made;
}

CounterRing::CounterRing(const Setup& setup, Placement placement)
    : setup_(setup),
      placement_(std::move(placement)),
      windows_(
          {setup_.keys_max, setup_.keys_max * kSlotsPerKey},
          [this](const Key& key) { return placement_.shard_of(key); }, *setup_.ledger),
      check_timer_(*setup_.reactor, [this] {
        own_check_ = check([](const RingCheckReport&) {});
        check_later();
      }) {}

// Behind twemproxy the shards' own addresses serve only ring checks and statistics.
Status CounterRing::look_up(const RingConfig& ring, std::string_view field) {
  if (ring.proxy) {
    Result<SocketAddress> address = SocketAddress::resolve(*ring.proxy);
    if (!address) return Error{std::string(field) + ".proxy: " + address.error()};
    proxy_ = *std::move(address);
  }
  for (const ShardConfig& shard : ring.shards) {
    Result<SocketAddress> address = SocketAddress::resolve(shard.address);
    if (!address && !ring.proxy) {
      return Error{std::string(field) + ".shards: " + shard.name + ": " + address.error()};
    }
    if (!address) spdlog::warn("count: shard {}: {}; it is not watched for evictions", shard.name, address.error());
    addresses_.push_back(address ? *std::move(address) : SocketAddress{});
  }
  return {};
}

Status CounterRing::add_shards(const RingConfig& ring, const CountersConfig& counters,
                               const Shard::ReportFunction& report) {
  timeout_ = counters.timeout;
  settle_ = setup_.flush_interval + 2 * counters.timeout + 2 * kMeshDelay;
  for (std::size_t i = 0; i < ring.shards.size(); ++i) {
    const ShardConfig& shard = ring.shards[i];
    Result<std::string> tag = placement_.tag_on(static_cast<ShardIndex>(i));
    if (!tag) return Error{tag.error()};
    Shard::Setup shard_setup{
        .reactor = setup_.reactor,
        .transport = setup_.transport,
        .name = shard.name,
        .address = proxy_ ? *proxy_ : addresses_[i],
        .ring = placement_.ring_id(),
        .generation_tag = *std::move(tag),
        .timeout = counters.timeout,
        .batches_in_flight = std::max(counters.batches_in_flight, 2U),
        .batch_keys_max = std::max(counters.batch_keys_max, 1U),
        .settle = settle_,
        .reads_only = setup_.reads_only,
    };
    shards_.push_back(std::make_unique<Shard>(std::move(shard_setup), windows_, *setup_.random, report));
    eviction_watches_.push_back(std::make_unique<EvictionWatch>(
        *setup_.reactor, *setup_.transport, addresses_[i], counters.timeout,
        EvictionWatch::Events{
            .evicted = [watched = shards_.back().get()](std::uint64_t items) { watched->items_evicted(items); },
            .evicted_before = [watched = shards_.back().get()] { watched->past_unknown(); },
            .sees = [watched = shards_.back().get()](bool sees) { watched->watched(sees); }}));
    spdlog::info("count: shard {} of {}: {}, weight {}, at {}{}", i + 1, ring.shards.size(), shard.name, shard.weight,
                 shard.address.text(), ring.proxy ? ", through twemproxy at " + ring.proxy->text() : "");
  }
  return {};
}

ShardIndex CounterRing::index_of(const Key& key) const {
  const WindowIndex index = windows_.find(key);
  return index == kNoWindow ? placement_.shard_of(key) : windows_.at(index).shard;
}

RingStatus CounterRing::status() const {
  RingStatus status{.id = ring_text(placement_.ring_id()), .shards = {}};
  for (const auto& shard : shards_) {
    status.shards.push_back(
        {.name = shard->name(), .reachable = shard->is_reachable(), .degraded = shard->is_degraded()});
  }
  return status;
}

void CounterRing::tick(PopInstant now) {
  for (const auto& shard : shards_) shard->tick(now);
  windows_.sweep(kSweptPerTick, now);
}

std::unique_ptr<RingCheck> CounterRing::check(RingCheck::DoneFunction done) {
  RingCheck::Setup setup;
  setup.reactor = setup_.reactor;
  setup.transport = setup_.transport;
  setup.placement = &placement_;
  for (const auto& shard : shards_) setup.names.push_back(shard->name());
  setup.addresses = addresses_;
  setup.proxy = proxy_;
  setup.timeout = timeout_;
  setup.seed = (*setup_.random)();
  return std::make_unique<RingCheck>(std::move(setup), [this, done = std::move(done)](const RingCheckReport& report) {
    note(report);
    done(report);
  });
}

void CounterRing::check_later() {
  constexpr auto kInterval = microseconds(kCheckInterval).count();
  std::uniform_int_distribution<std::int64_t> jittered(kInterval / 2, kInterval * 3 / 2);
  check_timer_.start_once(microseconds(jittered(*setup_.random)));
}

// Only what was written and is not where it should be is a misplacement; a shard that does not answer is another
// matter.
void CounterRing::note(const RingCheckReport& report) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const RingCheckShard& shard = report.shards[i];
    if (shard.differing > 0 || shard.agreeing > 0) shards_[i]->misplaced(shard.differing > 0);
  }
}

CountLag CounterRing::lag() const {
  CountLag lag{.ring = placement_.ring_id(), .shards = {}};
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (const auto told = shards_[i]->lag(static_cast<ShardIndex>(i))) lag.shards.push_back(*told);
  }
  return lag;
}

}  // namespace popgate
