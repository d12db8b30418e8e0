// SPDX-License-Identifier: Apache-2.0
//
// Counters in a consistent-hashed cluster of memcached, straight or through twemproxy: the CounterStore of a PoP.
//
// It routes every sum to the shard that libmemcached's placement gives its key, and reports every key's totals when the
// shard has answered. A key whose shard does not answer, or has more to do than it can take, is reported at once with
// what is known and this node's own hits, so that no failure of a shard delays this node's own judgement.
//
// Threads: the event loop's.
// Invariants: those of CounterStore; of KeyWindows (the ledger); of Shard (at most once).
// Limits: keys_max keys, kSlotsPerKey slots for each on average.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/count/counter_store.h"
#include "daemon/count/eviction_watch.h"
#include "daemon/count/key_windows.h"
#include "daemon/count/placement.h"
#include "daemon/count/ring_check.h"
#include "daemon/count/shard.h"
#include "daemon/result.h"

namespace popgate {

struct CountersConfig;

class MemcachedStore final : public CounterStore {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    Ledger* ledger = nullptr;
    SharedRules rules;
    milliseconds flush_interval{50};
    std::uint32_t keys_max = 0;
    std::uint64_t seed = 0;  // for back-off and generation keys
  };

  /// Looks up the servers' names (which may block) and begins to connect. A shard that does not answer is no error; one
  /// that no key is placed on, or whose address cannot be looked up, is.
  [[nodiscard]] static Result<std::unique_ptr<MemcachedStore>> make(const CountersConfig& config, Setup setup,
                                                                    TotalsFunction totals);

  void submit(std::span<const HitSum> sums, PopInstant now) override;
  void tick(PopInstant now) override;
  void hold_increments(bool hold) override;
  void use_rules(SharedRules rules) override { setup_.rules = std::move(rules); }
  [[nodiscard]] std::vector<SlotCount> slots_of(const Key& key) const override;
  [[nodiscard]] bool counters_lost(const Key& key, PopInstant now) const override;
  [[nodiscard]] bool is_degraded(const Key& key) const override;
  [[nodiscard]] bool idle() const override;
  [[nodiscard]] std::vector<ShardStatus> shards() const override;
  void visit(const MetricVisitor& visitor) const override;

  [[nodiscard]] const Placement& placement() const { return placement_; }
  /// Begins a check of the ring (`popgatectl ring-check`); the store outlives it.
  [[nodiscard]] std::unique_ptr<RingCheck> check_ring(RingCheck::DoneFunction done);

 private:
  static constexpr std::size_t kSlotsPerKey = kSlotsDefault + 2;
  static constexpr std::size_t kSweptPerTick = 4096;
  /// How late another node's news may be; part of `settle`.
  static constexpr milliseconds kMeshDelay{100};

  MemcachedStore(Setup setup, Placement placement, TotalsFunction totals);
  [[nodiscard]] Status look_up(const CountersConfig& config);
  [[nodiscard]] Status add_shards(const CountersConfig& config);
  void report(WindowIndex index, bool fresh, PopInstant now);
  void report_waiting(PopInstant now);

  Setup setup_;
  Placement placement_;
  TotalsFunction totals_;
  std::mt19937_64 random_;
  KeyWindows windows_;
  std::vector<SocketAddress> addresses_;  // of the shards themselves
  std::optional<SocketAddress> proxy_;
  milliseconds timeout_{0};
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<EvictionWatch>> eviction_watches_;
  std::vector<WindowIndex> submitted_;  // keys of the sums being submitted, each once or more
  std::vector<SlotCount> slot_counts_;  // of the key being reported
  std::uint64_t unknown_rule_hits_ = 0;
};

}  // namespace popgate
