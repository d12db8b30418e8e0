// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/placement.h"

#include <libmemcached/memcached.h>

#include <cstdio>

#include "daemon/config.h"
#include "daemon/fnv_hash.h"

namespace popgate {
namespace {

// Folded to 32 bits: short in every counter key.
CounterRingId ring_id_of(const std::vector<ShardConfig>& shards) {
  FnvHash hash;
  for (const ShardConfig& shard : shards) {
    hash.add(std::to_string(shard.name.size()) + ":" + shard.name + ":" + std::to_string(shard.weight) + ";");
  }
  return static_cast<CounterRingId>(hash.value() ^ hash.value() >> 32);
}

}  // namespace

void Placement::HandleDeleter::operator()(memcached_st* handle) const noexcept { memcached_free(handle); }

Result<Placement> Placement::make(const std::vector<ShardConfig>& shards) {
  if (shards.empty() || shards.size() > UINT16_MAX) {
    return Error{"counters.shards: found " + std::to_string(shards.size()) + " shards, allowed: 1 to 65535"};
  }
  Placement placement;
  placement.handle_.reset(memcached_create(nullptr));
  memcached_st* const handle = placement.handle_.get();
  if (handle == nullptr) return Error{"libmemcached: out of memory"};
  memcached_return_t outcome = memcached_behavior_set(handle, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
  for (const ShardConfig& shard : shards) {
    if (memcached_failed(outcome)) break;
    outcome = memcached_server_add_with_weight(handle, shard.name.c_str(), MEMCACHED_DEFAULT_PORT, shard.weight);
  }
  if (memcached_failed(outcome)) return Error{std::string("libmemcached: ") + memcached_strerror(handle, outcome)};
  placement.shard_count_ = shards.size();
  placement.ring_id_ = ring_id_of(shards);
  return placement;
}

ShardIndex Placement::shard_of(std::string_view tag) const {
  return static_cast<ShardIndex>(memcached_generate_hash(handle_.get(), tag.data(), tag.size()));
}

ShardIndex Placement::shard_of(const Key& key) const {
  char tag[kKeyTagChars];
  write_key_tag(key, tag);
  return shard_of(std::string_view(tag, sizeof tag));
}

Result<std::string> Placement::tag_on(ShardIndex shard) const {
  for (int i = 0; i < kTagSearchMax; ++i) {
    char tag[kKeyTagChars + 1];
    std::snprintf(tag, sizeof tag, "shard-%016d", i);
    const std::string_view text(tag, kKeyTagChars);
    if (shard_of(text) == shard) return std::string(text);
  }
  return Error{"counters.shards[" + std::to_string(shard) + "]: no key is placed on this shard; raise its weight"};
}

}  // namespace popgate
