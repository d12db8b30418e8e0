// SPDX-License-Identifier: Apache-2.0
//
// Which shard a key's counters live on: libmemcached's weighted ketama continuum, set up so that twemproxy, given the
// same names and weights, chooses the same shard for every key.
//
// A handle of libmemcached that never connects holds the continuum. Each server enters it under its *name* and the
// default port, because twemproxy hashes the name and nothing else when there is one: a shard may move to another
// address and keep its keys. KETAMA_WEIGHTED comes first, since it resets the hash function. Any deviation (plain
// KETAMA, weights left out, the whole counter key hashed instead of its tag) puts a third to three quarters of the keys
// on another shard without an error anywhere; placement_test and `popgatectl ring-check` compare with the real thing.
//
// Threads: one thread at a time.
// Invariants: 1. Equal names and weights in equal order give equal shards, on every node and in every release.
// Limits: 188 ns a key (md5): whoever holds a key remembers its shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/result.h"
#include "libclient/key.h"

struct memcached_st;

namespace popgate {

struct ShardConfig;

using ShardIndex = std::uint16_t;  // into CountersConfig::shards

/// Names a ring: counters of two rings with different servers or weights never mix.
using CounterRingId = std::uint32_t;

class Placement {
 public:
  [[nodiscard]] static Result<Placement> make(const std::vector<ShardConfig>& shards);

  [[nodiscard]] ShardIndex shard_of(std::string_view tag) const;
  [[nodiscard]] ShardIndex shard_of(const Key& key) const;
  [[nodiscard]] std::size_t shard_count() const { return shard_count_; }
  [[nodiscard]] CounterRingId ring_id() const { return ring_id_; }

  /// A tag of kKeyTagChars characters that lies on this shard, always the same one. An error when kTagSearchMax tags
  /// all lie elsewhere: such a shard would get no key at all.
  [[nodiscard]] Result<std::string> tag_on(ShardIndex shard) const;

 private:
  static constexpr int kTagSearchMax = 1'000'000;
  struct HandleDeleter {
    void operator()(memcached_st* handle) const noexcept;
  };

  Placement() = default;

  std::unique_ptr<memcached_st, HandleDeleter> handle_;
  std::size_t shard_count_ = 0;
  CounterRingId ring_id_ = 0;
};

}  // namespace popgate
