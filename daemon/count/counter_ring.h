// SPDX-License-Identifier: Apache-2.0
//
// One consistent-hashed ring of memcached shards, with what this node knows of the keys that it counts or reads there.
//
// A node counts in one ring. While the shards of a PoP change it reads another one too (`counters.also_read`): there a
// ring is asked for totals and never adds to any. Each has its own ring id in every counter's name, so the two may
// share memcached processes.
//
// Threads: the event loop's.
// Invariants: those of KeyWindows and Shard.
// Limits: keys_max keys, kSlotsPerKey slots for each on average.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/count/counter_store.h"
#include "daemon/count/eviction_watch.h"
#include "daemon/count/key_windows.h"
#include "daemon/count/placement.h"
#include "daemon/count/ring_check.h"
#include "daemon/count/shard.h"
#include "daemon/result.h"
#include "daemon/transport.h"

namespace popgate {

struct CountersConfig;
struct RingConfig;

class CounterRing {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    Ledger* ledger = nullptr;
    std::mt19937_64* random = nullptr;  // for back-off and generation keys
    std::uint32_t keys_max = 0;
    milliseconds flush_interval{50};
    bool reads_only = false;
  };

  /// `ring` is a part of `counters`, or counters itself. Looks up the servers' names (which may block) and begins to
  /// connect. A shard that does not answer is no error; one that no key is placed on, or whose address cannot be looked
  /// up, is.
  [[nodiscard]] static Result<std::unique_ptr<CounterRing>> make(const RingConfig& ring, const CountersConfig& counters,
                                                                 const Setup& setup,
                                                                 const Shard::ReportFunction& report);

  [[nodiscard]] KeyWindows& windows() { return windows_; }
  [[nodiscard]] const KeyWindows& windows() const { return windows_; }
  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] Shard& shard_of(const KeyWindow& window) { return *shards_[window.shard]; }
  [[nodiscard]] const Shard& shard_of(const KeyWindow& window) const { return *shards_[window.shard]; }
  /// Also of a key that is not held.
  [[nodiscard]] ShardIndex index_of(const Key& key) const;
  [[nodiscard]] const Shard& shard_of(const Key& key) const { return *shards_[index_of(key)]; }
  [[nodiscard]] const std::vector<std::unique_ptr<Shard>>& shards() const { return shards_; }

  [[nodiscard]] RingStatus status() const;

  void tick(PopInstant now);
  /// Begins a check; what it finds is remembered here, too.
  [[nodiscard]] std::unique_ptr<RingCheck> check(RingCheck::DoneFunction done);
  [[nodiscard]] CountLag lag() const;
  [[nodiscard]] microseconds settle() const { return settle_; }

 private:
  static constexpr std::size_t kSlotsPerKey = kSlotsDefault + 2;
  static constexpr std::size_t kSweptPerTick = 4096;
  /// How late another node's news may be; part of `settle`.
  static constexpr milliseconds kMeshDelay{100};
  /// Between two checks of the ring by the daemon itself, jittered by a half either way so that nodes do not check in
  /// step. Behind a proxy only: without one, placement is this process's own.
  static constexpr std::chrono::minutes kCheckInterval{5};

  CounterRing(const Setup& setup, Placement placement);
  [[nodiscard]] Status look_up(const RingConfig& ring, std::string_view field);
  [[nodiscard]] Status add_shards(const RingConfig& ring, const CountersConfig& counters,
                                  const Shard::ReportFunction& report);

  void check_later();
  void note(const RingCheckReport& report);

  Setup setup_;
  Placement placement_;
  KeyWindows windows_;
  std::vector<SocketAddress> addresses_;  // of the shards themselves
  std::optional<SocketAddress> proxy_;
  milliseconds timeout_{0};
  microseconds settle_{0};
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<EvictionWatch>> eviction_watches_;
  std::unique_ptr<RingCheck> own_check_;
  Timer check_timer_;
};

}  // namespace popgate
