// SPDX-License-Identifier: Apache-2.0
//
// What all peers together hold back, by shard: whether the totals that this node reads can contain every hit that is
// older than `settle`.
//
// They cannot while a peer says that it holds hits of the shard for longer; while a configured peer is not heard and
// has not said goodbye; and while a peer counts in a ring that this node does not read.
//
// Threads: the event loop's.
// Limits: two rings of kShardsMax shards.
#pragma once

#include <span>
#include <vector>

#include "daemon/count/count_lag.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"

namespace popgate {

class PeerLags {
 public:
  struct Ring {
    CounterRingId id = 0;
    std::size_t shards = 0;
  };
  /// `rings`: those that this node reads. `settle`: within this a hit is in the totals if nothing is wrong.
  PeerLags(const std::vector<Ring>& rings, microseconds settle);

  /// All configured peers as known now.
  void take(std::span<const PeerLag> peers, PopInstant now, HostInstant host_now);
  /// `shards`: the key's, in the order of the rings.
  [[nodiscard]] PeerDoubt doubt(std::span<const ShardIndex> shards) const;
  /// When the last doubt about that shard of that ring was over: until then a peer may have added to slots of any age,
  /// so what was read of them has to be read again. While there is a doubt, upper bounds are unknown, and it is not
  /// worth it.
  [[nodiscard]] PopInstant clear_since(std::size_t ring, ShardIndex shard) const;
  void visit(const MetricVisitor& visitor) const;

 private:
  struct RingDoubts {
    CounterRingId id = 0;
    std::vector<PeerDoubt> shards;
    std::vector<bool> was_unknown;  // parallel, as is what follows
    std::vector<PopInstant> clear_since;
  };
  enum class Standing : std::uint8_t { kTold, kSilent, kForeign };

  [[nodiscard]] Standing add(const PeerLag& peer, PopInstant now);
  void note_clear(PopInstant now);
  void tell_foreign(const PeerLag& peer, HostInstant now);

  std::vector<RingDoubts> rings_;
  microseconds settle_;
  std::size_t silent_ = 0;   // peers that are not heard
  std::size_t foreign_ = 0;  // peers that count where this node does not read
  std::size_t lagging_ = 0;  // shards of which a peer holds hits back
  LogLimiter log_;
};

}  // namespace popgate
