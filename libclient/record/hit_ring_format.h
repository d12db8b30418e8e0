// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a hit ring: the one-way queue from one worker thread to the daemon.
//
// The worker creates it as a memfd sealed against shrinking, growing and further seals, keeps it, and hands it to each
// daemon that comes. The worker alone writes slots, `head`, and what it dropped; the daemon alone writes `tail` and
// what it folded. The daemon trusts nothing in it: positions are checked against each other, every slot against the
// rules.
//
// Layout: RingHeader (one page), ring_slots × RingSlot, then two arrays of 64-bit counts, one count per rule number
// (kRuleNumbersMax each; pages that are never written take no memory): `dropped`, what the worker dropped because the
// ring was full, and `folded`, how much of it the daemon has taken into its ledger. It stands here and not in the
// daemon, so that a daemon that starts afresh does not count the same drops again.
//
// Order: a slot is written before `head` moves past it (release), and read after `head` was read (acquire); a slot is
// read before `tail` moves past it (release), and overwritten after `tail` was read (acquire).
// Invariants: 1. head - tail <= ring_slots; both only rise and never wrap in practice (64 bits).
//             2. A hit that finds head - tail == ring_slots is not written; its cost is added to dropped[rule].
//             3. A worker killed at any instruction leaves whole hits only: what `head` has passed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "libclient/key.h"

namespace popgate {

inline constexpr std::uint64_t kRingMagic = 0x31474e4952475050;  // "PPGRING1", little-endian
inline constexpr std::uint32_t kRingVersion = 1;
inline constexpr std::uint32_t kRingSlotsMin = 1024;
inline constexpr std::uint32_t kRingSlotsDefault = 65536;
inline constexpr std::uint32_t kRingSlotsMax = 1048576;
inline constexpr std::uint32_t kHitCostMax = 10000;  // a rule's cost is refused above it, and so is a slot's

/// Rules with a fuse whose blocked requests one ring can tell; twice as many as there may be at a time, so that some
/// may come and go while a worker lives.
inline constexpr std::uint32_t kRingFusedMax = 128;

/// One request under one rule, stamped by the worker with the PoP clock.
struct Hit {
  Key key;
  std::int64_t stamp_us = 0;  // PopInstant
  RuleNumber rule = 0;
  std::uint32_t cost = 1;
};

/// Names a ring to the daemons that come and go. Random; never shown, because who knows it could claim the ring.
struct RingId {
  std::uint64_t hi = 0;
  std::uint64_t lo = 0;
  friend bool operator==(const RingId&, const RingId&) = default;
};

struct RingSlot {
  std::uint64_t key_hi;
  std::uint64_t key_lo;
  std::int64_t stamp_us;
  std::uint32_t rule;
  std::uint32_t cost;
};
static_assert(sizeof(RingSlot) == 32);

/// Requests that a rule with a fuse blocked, or would have blocked. A place belongs to a rule for as long as the worker
/// lives.
struct RingBlocked {
  std::atomic<std::uint32_t> rule;  // worker; 0: free
  std::uint32_t reserved;
  std::atomic<std::uint64_t> requests;  // worker: only rises
};
static_assert(sizeof(RingBlocked) == 16);

struct RingHeader {
  std::uint64_t magic;                          // worker, once
  std::uint32_t version;                        // worker, once
  std::uint32_t ring_slots;                     // worker, once: a power of two
  RingId ring_id;                               // worker, once
  std::int32_t worker_pid;                      // worker, once: for people only
  char worker_name[32];                         // worker, once: for people only, zero-terminated
  alignas(64) std::atomic<std::uint64_t> head;  // worker
  std::atomic<std::uint64_t> dropped_total;     // worker: sum of dropped[]
  alignas(64) std::atomic<std::uint64_t> tail;  // daemon
  // Of every request that was judged, whether or not a hit of it counts. Zeros in a ring of an older worker.
  alignas(64) std::atomic<std::uint64_t> requests;  // worker: only rises
  RingBlocked blocked[kRingFusedMax];
};
inline constexpr std::size_t kRingHeaderBytes = 4096;
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);

constexpr std::size_t ring_slots_offset() { return kRingHeaderBytes; }
constexpr std::size_t ring_dropped_offset(std::uint32_t ring_slots) {
  return kRingHeaderBytes + std::size_t{ring_slots} * sizeof(RingSlot);
}
inline constexpr std::size_t kRingCountsBytes = std::size_t{kRuleNumbersMax} * sizeof(std::uint64_t);
constexpr std::size_t ring_folded_offset(std::uint32_t ring_slots) {
  return ring_dropped_offset(ring_slots) + kRingCountsBytes;
}
constexpr std::size_t ring_bytes(std::uint32_t ring_slots) { return ring_folded_offset(ring_slots) + kRingCountsBytes; }
constexpr bool ring_slots_allowed(std::uint32_t ring_slots) {
  return ring_slots >= kRingSlotsMin && ring_slots <= kRingSlotsMax && (ring_slots & (ring_slots - 1)) == 0;
}

}  // namespace popgate
