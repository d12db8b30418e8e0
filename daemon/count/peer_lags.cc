// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/peer_lags.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/count/counter_key.h"

namespace popgate {

PeerLags::PeerLags(const std::vector<Ring>& rings, microseconds settle) : settle_(settle) {
  for (const Ring& ring : rings) {
    rings_.push_back({.id = ring.id,
                      .shards = std::vector<PeerDoubt>(ring.shards),
                      .was_unknown = std::vector(ring.shards, false),
                      .clear_since = std::vector(ring.shards, PopInstant::min())});
  }
}

void PeerLags::take(std::span<const PeerLag> peers, PopInstant now, HostInstant host_now) {
  for (RingDoubts& ring : rings_) std::ranges::fill(ring.shards, PeerDoubt{});
  const std::size_t foreign_before = foreign_;
  silent_ = foreign_ = lagging_ = 0;
  for (const PeerLag& peer : peers) {
    const Standing standing = add(peer, now);
    if (standing == Standing::kSilent) ++silent_;
    if (standing == Standing::kForeign && ++foreign_ > foreign_before) tell_foreign(peer, host_now);
  }
  note_clear(now);
}

void PeerLags::note_clear(PopInstant now) {
  for (RingDoubts& ring : rings_) {
    for (std::size_t shard = 0; shard < ring.shards.size(); ++shard) {
      const bool unknown = silent_ > 0 || foreign_ > 0 || ring.shards[shard].unknown;
      if (ring.was_unknown[shard] && !unknown) ring.clear_since[shard] = now;
      ring.was_unknown[shard] = unknown;
    }
  }
}

PopInstant PeerLags::clear_since(std::size_t ring, ShardIndex shard) const { return rings_[ring].clear_since[shard]; }

PeerLags::Standing PeerLags::add(const PeerLag& peer, PopInstant now) {
  if (!peer.heard || !peer.lag) return peer.said_goodbye ? Standing::kTold : Standing::kSilent;
  const auto ring = std::ranges::find(rings_, peer.lag->ring, &RingDoubts::id);
  if (ring == rings_.end()) return Standing::kForeign;
  for (const ShardLag& lag : peer.lag->shards) {
    if (lag.shard >= ring->shards.size()) continue;  // of a ring of this id there is none
    PeerDoubt& doubt = ring->shards[lag.shard];
    if (lag.waiting > settle_) {
      doubt.unknown = true;
      ++lagging_;
    }
    if (lag.uncertain_until > now) doubt.uncertain += lag.uncertain_most;
  }
  return Standing::kTold;
}

void PeerLags::tell_foreign(const PeerLag& peer, HostInstant now) {
  if (!log_.allow(now)) return;
  spdlog::error(
      "count: peer {} counts on ring {}, which this node does not read: its hits are missing here, upper bounds "
      "are unknown; compare counters.shards (docs/operations.md, Changing the shards)",
      peer.node, ring_text(peer.lag->ring));
}

PeerDoubt PeerLags::doubt(std::span<const ShardIndex> shards) const {
  PeerDoubt sum{.unknown = silent_ > 0 || foreign_ > 0};
  for (std::size_t i = 0; i < std::min(shards.size(), rings_.size()); ++i) {
    const PeerDoubt& doubt = rings_[i].shards[shards[i]];
    sum.unknown = sum.unknown || doubt.unknown;
    sum.uncertain += doubt.uncertain;
  }
  return sum;
}

void PeerLags::visit(const MetricVisitor& visitor) const {
  const auto state = [&](std::string_view name, std::string_view unit, std::string_view meaning, std::size_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), false, {}, {}});
  };
  state("popgate_count_peers_silent", "peers",
        "Configured peers that are not heard and did not say goodbye: upper bounds are unknown.", silent_);
  state("popgate_count_peers_on_other_ring", "peers",
        "Peers that count on a ring which this node does not read: their hits are missing here.", foreign_);
  state("popgate_count_peers_shards_lagging", "shards",
        "Shards of peers that hold hits back for longer than counting takes: upper bounds of their keys are unknown.",
        lagging_);
}

}  // namespace popgate
