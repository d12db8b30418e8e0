// SPDX-License-Identifier: Apache-2.0
//
// The hash of the compiled rules' indexes, and the walk over their slots, for the compiler and the reader alike.
//
// A multiply-and-fold hash and not SipHash: it takes about 3 ns for a host name, and who knows the seed knows the
// secret already.
//
// Threads: pure functions.
// Limits: a walk looks at every slot once at most, whatever the slots hold.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "libclient/match/rules_format.h"

namespace popgate {

__extension__ using Wide = unsigned __int128;

[[nodiscard]] constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Odd, with as many ones as zeros (from the fraction of the golden ratio and of the square root of 2 and 3).
inline constexpr std::uint64_t kIndexMixer = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t kIndexMixerLast = 0x6a09e667f3bcc909;
inline constexpr std::uint64_t kIndexMixerLength = 0xbb67ae8584caa73b;

[[nodiscard]] inline std::uint64_t index_hash(std::uint64_t seed, std::string_view bytes) noexcept {
  std::uint64_t hash = seed ^ (bytes.size() * kIndexMixerLength);
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = fold_product(hash ^ word, kIndexMixer);
    bytes.remove_prefix(sizeof word);
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return fold_product(hash ^ rest ^ kIndexMixerLast, kIndexMixer);
}

/// Seeds that keep the hashes of different kinds of records apart.
[[nodiscard]] constexpr std::uint64_t host_seed(std::uint64_t seed, GroupKind kind) noexcept {
  return seed + static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr std::uint64_t path_seed(std::uint64_t seed, std::uint32_t group) noexcept {
  return fold_product(seed ^ kIndexMixerLength, kIndexMixer + 2 * std::uint64_t{group});
}

[[nodiscard]] constexpr std::uint32_t index_tag(std::uint64_t hash) noexcept {
  return static_cast<std::uint32_t>(hash >> 32) & ~kIndexItemMask;
}

/// The first record along the walk of `hash` for which `is_it(record index)`; kNoRecord when there is none.
template <typename Predicate>
[[nodiscard]] std::uint32_t index_find(std::span<const std::uint32_t> slots, std::uint64_t hash,
                                       Predicate is_it) noexcept {
  if (slots.empty()) return kNoRecord;
  const std::uint64_t mask = slots.size() - 1;
  const std::uint32_t tag = index_tag(hash);
  for (std::uint64_t step = 0; step <= mask; ++step) {
    const std::uint32_t slot = slots[(hash + step) & mask];
    if (slot == 0) return kNoRecord;
    const std::uint32_t item = (slot & kIndexItemMask) - 1;
    if ((slot & ~kIndexItemMask) == tag && is_it(item)) return item;
  }
  return kNoRecord;
}

}  // namespace popgate
