// SPDX-License-Identifier: Apache-2.0
//
// What a node tells its peers about hits that are in none of their totals, shard by shard of the ring in which it
// counts: without that, an upper bound is a claim about this node's hits alone.
//
// Threads: values.
// Limits: kShardsMax shards; only those with something to tell are listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/count/placement.h"
#include "libclient/instant.h"

namespace popgate {

struct ShardLag {
  ShardIndex shard = 0;
  microseconds waiting{0};           // age of the oldest hit that was not sent
  std::uint64_t uncertain_most = 0;  // the most increments of one key that may have been counted or not
  PopInstant uncertain_until{};      // until when they can touch a window
  friend bool operator==(const ShardLag&, const ShardLag&) = default;
};

struct CountLag {
  CounterRingId ring = 0;
  std::vector<ShardLag> shards;
  friend bool operator==(const CountLag&, const CountLag&) = default;
};

/// What this node knows of one configured peer.
struct PeerLag {
  std::string node;
  bool heard = false;         // within the last second
  bool said_goodbye = false;  // after it had sent everything
  std::optional<CountLag> lag;
};

/// What peers' hits do to an upper bound.
struct PeerDoubt {
  bool unknown = false;         // a peer holds hits back, or nobody knows whether it does
  std::uint64_t uncertain = 0;  // so many more there may be
};

}  // namespace popgate
