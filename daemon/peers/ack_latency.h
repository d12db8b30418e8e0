// SPDX-License-Identifier: Apache-2.0
//
// How long from a decision on this node until a peer has acknowledged that it enforces it: quantiles over all that were
// measured, in constant memory.
//
// Counts in buckets whose width is an eighth of their octave: a quantile is at most 12.5 % too high, never too low.
//
// Threads: the event loop's.
// Limits: kAckBuckets buckets: from 1 us to 71 minutes; what is longer counts in the last. kAckPendingMax decisions
//         under way are timed; beyond it the newest are not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "libclient/instant.h"

namespace popgate {

inline constexpr unsigned kAckOctaves = 32;
inline constexpr unsigned kAckBucketsInOctave = 8;
inline constexpr unsigned kAckBuckets = kAckOctaves * kAckBucketsInOctave;
inline constexpr std::size_t kAckPendingMax = 4096;

class AckLatency {
 public:
  /// The message with this sequence number carries a decision made at `decided`.
  void sent(std::uint64_t sequence, HostInstant decided);
  /// Everything up to this sequence number is acknowledged.
  void acknowledged(std::uint64_t sequence, HostInstant now);
  /// The connection is gone, and with it what was under way.
  void forget_pending() { pending_.clear(); }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] microseconds max() const { return max_; }
  /// At least this share of all took no longer; 0 when nothing was measured.
  [[nodiscard]] microseconds quantile(double share) const;

 private:
  struct Pending {
    std::uint64_t sequence;
    HostInstant decided;
  };
  void add(microseconds latency);

  std::deque<Pending> pending_;
  std::array<std::uint64_t, kAckBuckets> buckets_{};
  std::uint64_t count_ = 0;
  microseconds max_{0};
};

}  // namespace popgate
