// SPDX-License-Identifier: Apache-2.0
//
// A digest of all live entries: per bucket of keys the sum of the entries' hashes, so that it does not depend on any
// order, follows each change in constant time, and tells two nodes *which* part of their sets differs.
//
// Threads: values.
// Invariants: 1. Equal sets have equal digests. Different sets have different ones but for a chance of 2^-64 a bucket.
#pragma once

#include <array>
#include <cstdint>

#include "libclient/key.h"

namespace popgate {

inline constexpr unsigned kDigestBuckets = 64;
inline constexpr std::uint64_t kAllBuckets = ~std::uint64_t{0};

struct Digest {
  std::array<std::uint64_t, kDigestBuckets> buckets{};
  std::uint64_t entries = 0;
  friend bool operator==(const Digest&, const Digest&) = default;

  void add(const Key& key, std::uint64_t hash);
  void remove(const Key& key, std::uint64_t hash);
};

[[nodiscard]] constexpr unsigned digest_bucket(const Key& key) { return static_cast<unsigned>(key.hi >> 58); }
static_assert(kDigestBuckets == 1U << 6);

/// One bit for each bucket that differs.
[[nodiscard]] std::uint64_t differing_buckets(const Digest& a, const Digest& b);

}  // namespace popgate
