// SPDX-License-Identifier: Apache-2.0
//
// Counters in this process: what a memcached is to the nodes of a PoP, for a PoP of one node and for the replay, where
// the stores of several nodes share one of these.
//
// Threads: one thread at a time.
// Invariants: 1. A total never falls while its slot can still touch a window and its key was not evicted.
// Limits: keys_max keys; at the bound the longest unused of kSample keys chosen at random makes room, so that a
//         flood of new keys meets mostly its own. Slots are kept for W + l + 2D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "daemon/metrics.h"
#include "daemon/window.h"
#include "libclient/key.h"

namespace popgate {

class MemoryCounters {
 public:
  MemoryCounters(std::size_t keys_max, std::uint64_t seed);

  struct Addition {
    Key key;
    SlotIndex slot = 0;
    std::uint64_t hits = 0;
  };
  /// Returns the slot's new total.
  std::uint64_t add(const Addition& addition, const WindowShape& shape, PopInstant now);
  /// 0 when nothing was counted.
  [[nodiscard]] std::uint64_t total(const Key& key, SlotIndex slot) const;
  /// True within W + l + 2D of the eviction of a key whose slots could still touch a window.
  [[nodiscard]] bool counters_lost(const WindowShape& shape, PopInstant now) const;

  [[nodiscard]] std::size_t key_count() const { return counters_.size(); }
  void visit(const MetricVisitor& visitor) const;

 private:
  static constexpr int kSample = 16;
  static constexpr PopInstant kNever = PopInstant::min();

  struct SlotTotal {
    SlotIndex slot = 0;
    std::uint64_t hits = 0;
  };
  struct Counters {
    Key key;
    WindowShape shape;
    PopInstant last_hit{};
    std::vector<SlotTotal> slots;  // in the order of their first hit
  };

  [[nodiscard]] Counters& counters_of(const Key& key, const WindowShape& shape, PopInstant now);
  void evict(PopInstant now);

  std::size_t keys_max_;
  std::mt19937_64 random_;
  std::vector<Counters> counters_;
  std::unordered_map<Key, std::size_t, KeyHash> index_;
  PopInstant lost_at_ = kNever;
  std::uint64_t evicted_cold_ = 0;
  std::uint64_t evicted_live_ = 0;
};

}  // namespace popgate
