// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memcached_store.h"

#include <algorithm>

#include "daemon/collect/ledger.h"
#include "daemon/config.h"

namespace popgate {
namespace {

// Adds the totals of one ring to those of another, slot by slot; both ascend.
void add_known(const std::vector<SlotCount>& more, std::vector<SlotCount>& counts) {
  for (const SlotCount& other : more) {
    const auto held = std::lower_bound(counts.begin(), counts.end(), other.slot,
                                       [](const SlotCount& count, SlotIndex slot) { return count.slot < slot; });
    if (held != counts.end() && held->slot == other.slot) {
      held->known += other.known;
    } else {
      counts.insert(held, {.slot = other.slot, .known = other.known});
    }
  }
}

}  // namespace

Result<std::unique_ptr<MemcachedStore>> MemcachedStore::make(const CountersConfig& config, Setup setup,
                                                             TotalsFunction totals) {
  std::unique_ptr<MemcachedStore> made(new MemcachedStore(std::move(setup), std::move(totals)));
  MemcachedStore& store = *made;
  CounterRing::Setup ring_setup{.reactor = store.setup_.reactor,
                                .transport = store.setup_.transport,
                                .ledger = store.setup_.ledger,
                                .random = &store.random_,
                                .keys_max = store.setup_.keys_max,
                                .flush_interval = store.setup_.flush_interval,
                                .reads_only = false};
  Result<std::unique_ptr<CounterRing>> ring =
      CounterRing::make(config, config, ring_setup,
                        [&store](WindowIndex index, bool fresh, PopInstant now) { store.answered(index, fresh, now); });
  if (!ring) return Error{ring.error()};
  store.ring_ = *std::move(ring);
  if (config.also_read) {
    if (const Status read = store.also_read(config, ring_setup); !read) return Error{read.error()};
  }
  std::vector<PeerLags::Ring> rings;
  for (const CounterRing* one : {store.ring_.get(), store.other_.get()}) {
    if (one != nullptr) rings.push_back({one->placement().ring_id(), one->shards().size()});
  }
  store.peer_lags_.emplace(rings, store.ring_->settle());
  return made;
}

Status MemcachedStore::also_read(const CountersConfig& config, CounterRing::Setup ring_setup) {
  ring_setup.reads_only = true;
  Result<std::unique_ptr<CounterRing>> other = CounterRing::make(
      *config.also_read, config, ring_setup,
      [this](WindowIndex index, bool fresh, PopInstant now) { answered_by_other(index, fresh, now); });
  if (!other) return Error{other.error()};
  other_ = *std::move(other);
  return {};
}

MemcachedStore::MemcachedStore(Setup setup, TotalsFunction totals)
    : setup_(std::move(setup)), totals_(std::move(totals)), intake_(*setup_.ledger), random_(setup_.seed) {}

void MemcachedStore::submit(std::span<const HitSum> sums, PopInstant now) {
  submitted_.clear();
  KeyWindows& windows = ring_->windows();
  intake_.take(sums, *setup_.rules, windows, now, [&](WindowIndex index) {
    ring_->shard_of(windows.at(index)).add_due(index);
    submitted_.push_back(index);
  });
  for (const auto& shard : ring_->shards()) shard->pump(now);
  report_waiting(now);
}

// The keys whose hits still wait here: their shard does not answer, or is busy.
void MemcachedStore::report_waiting(PopInstant now) {
  const KeyWindows& windows = ring_->windows();
  std::vector<WindowIndex> waiting = std::move(submitted_);
  std::erase_if(waiting, [&](WindowIndex index) { return windows.at(index).unsent == 0; });
  std::sort(waiting.begin(), waiting.end());
  waiting.erase(std::unique(waiting.begin(), waiting.end()), waiting.end());
  for (const WindowIndex index : waiting) report(windows.at(index), false, now);
  submitted_ = std::move(waiting);
}

void MemcachedStore::answered(WindowIndex index, bool fresh, PopInstant now) {
  const KeyWindow& window = ring_->windows().at(index);
  if (fresh && other_) ask_other(window, now);
  report(window, fresh && !other_, now);
}

// Every slot of the key in the other ring, after all that was added in this one.
void MemcachedStore::ask_other(const KeyWindow& window, PopInstant now) {
  const WindowIndex index = other_->windows().hold(window.key, window.rule, window.shape);
  if (index == kNoWindow) return;  // as if it did not answer
  Shard& shard = other_->shard_of(other_->windows().at(index));
  shard.add_due(index);
  shard.pump(now);
}

void MemcachedStore::answered_by_other(WindowIndex other_index, bool fresh, PopInstant now) {
  const WindowIndex index = ring_->windows().find(other_->windows().at(other_index).key);
  if (!fresh || index == kNoWindow) return;
  const KeyWindow& window = ring_->windows().at(index);
  report(window, ring_->shard_of(window).is_reachable(), now);
}

void MemcachedStore::report(const KeyWindow& window, bool fresh, PopInstant now) {
  const Shard& shard = ring_->shard_of(window);
  list_slots(window, slot_counts_);
  totals_({.key = window.key,
           .rule = window.rule,
           .slots = slot_counts_,
           .fresh = fresh && hold_ == Hold::kNone,
           .counters_lost = shard.counters_lost(window.shape, now) || is_other_lost(window, now),
           .degraded = shard.is_degraded(),
           .clock_in_doubt = hold_ != Hold::kNone,
           .peers = peer_doubt(window.key)},
          now);
}

void MemcachedStore::list_slots(const KeyWindow& window, std::vector<SlotCount>& out) const {
  KeyWindows::list_slots(window, out);
  if (!other_) return;
  const WindowIndex index = other_->windows().find(window.key);
  if (index == kNoWindow) return;
  std::vector<SlotCount> more;
  KeyWindows::list_slots(other_->windows().at(index), more);
  add_known(more, out);
}

bool MemcachedStore::is_other_lost(const KeyWindow& window, PopInstant now) const {
  if (!other_) return false;
  const Shard& shard = other_->shard_of(window.key);
  return !shard.is_reachable() || shard.counters_lost(window.shape, now);
}

void MemcachedStore::tick(PopInstant now) {
  ring_->tick(now);
  if (other_) other_->tick(now);
}

void MemcachedStore::hold_increments(Hold hold) {
  if (hold == hold_) return;
  hold_ = hold;
  for (const auto& shard : ring_->shards()) shard->hold(hold);
}

std::vector<SlotCount> MemcachedStore::slots_of(const Key& key) const {
  std::vector<SlotCount> slots;
  const WindowIndex index = ring_->windows().find(key);
  if (index != kNoWindow) list_slots(ring_->windows().at(index), slots);
  return slots;
}

bool MemcachedStore::counters_lost(const Key& key, PopInstant now) const {
  const WindowIndex index = ring_->windows().find(key);
  if (index == kNoWindow) return false;
  const KeyWindow& window = ring_->windows().at(index);
  return ring_->shard_of(window).counters_lost(window.shape, now) || is_other_lost(window, now);
}

bool MemcachedStore::is_degraded(const Key& key) const { return ring_->shard_of(key).is_degraded(); }

void MemcachedStore::use_peer_lags(std::span<const PeerLag> peers, PopInstant now) {
  peer_lags_->take(peers, now, setup_.reactor->host_now());
  std::size_t ring = 0;
  for (const CounterRing* one : {ring_.get(), other_.get()}) {
    if (one == nullptr) continue;
    for (std::size_t i = 0; i < one->shards().size(); ++i) {
      one->shards()[i]->peers_clear_since(peer_lags_->clear_since(ring, static_cast<ShardIndex>(i)));
    }
    ++ring;
  }
}

PeerDoubt MemcachedStore::peer_doubt(const Key& key) const {
  ShardIndex shards[2]{ring_->index_of(key)};
  if (other_) shards[1] = other_->index_of(key);
  return peer_lags_->doubt(std::span(shards).first(other_ ? 2 : 1));
}

bool MemcachedStore::idle() const {
  return ring_->windows().unsent_hits() == 0 && ring_->windows().in_flight_hits() == 0;
}

std::vector<RingStatus> MemcachedStore::rings() const {
  std::vector<RingStatus> rings{ring_->status()};
  if (other_) rings.push_back(other_->status());
  return rings;
}

void MemcachedStore::visit(const MetricVisitor& visitor) const {
  ring_->windows().visit(visitor);
  intake_.visit(visitor);
  for (const auto& shard : ring_->shards()) visit_figures(shard->figures(), shard->name(), visitor);
  peer_lags_->visit(visitor);
  if (!other_) return;
  for (const auto& shard : other_->shards()) visit_read_figures(shard->figures(), shard->name(), visitor);
}

}  // namespace popgate
