// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/digest.h"

namespace popgate {

void Digest::add(const Key& key, std::uint64_t hash) {
  buckets[digest_bucket(key)] += hash;  // wraps by intent
  ++entries;
}

void Digest::remove(const Key& key, std::uint64_t hash) {
  buckets[digest_bucket(key)] -= hash;
  --entries;
}

std::uint64_t differing_buckets(const Digest& a, const Digest& b) {
  std::uint64_t mask = 0;
  for (unsigned bucket = 0; bucket < kDigestBuckets; ++bucket) {
    if (a.buckets[bucket] != b.buckets[bucket]) mask |= std::uint64_t{1} << bucket;
  }
  return mask;
}

}  // namespace popgate
