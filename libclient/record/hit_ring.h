// SPDX-License-Identifier: Apache-2.0
//
// The worker's end of a hit ring: creates it and records hits. Its bytes and rules are hit_ring_format.h's.
//
// When the daemon does not keep up, the newest hit is dropped and counted, never an old one overwritten: the worker
// then writes only what it owns, and the daemon's reader needs no check for torn slots.
//
// Threads: record() and create() by one thread, the worker; in the other process one daemon reads.
// Invariants: 1. record() makes no system call, takes no lock, allocates nothing, and touches only memory that create()
//                has faulted in (the counts of dropped hits excepted, one page per 512 rules that ever drop).
//             2. Nothing that the daemon writes into `tail` can make record() write outside the slots.
// Limits: ring_slots hits wait at most; the next is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "libclient/file_descriptor.h"
#include "libclient/mapping.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {

class HitRing {
 public:
  /// A new, empty, sealed ring under a random id. `slots` must be allowed; the name is cut after 31 bytes.
  /// False, with the reason in errno, when the kernel refuses; the ring is then unusable.
  [[nodiscard]] bool create(std::uint32_t slots, std::string_view worker_name) noexcept;

  /// False when the ring is full: the hit was counted as dropped.
  [[nodiscard]] bool record(const Hit& hit) noexcept {
    // The worker's own positions; `tail` is asked again only when the last answer says full: 1 cache miss per lap.
    if (head_ - tail_seen_ >= slots_) {
      tail_seen_ = header()->tail.load(std::memory_order_acquire);  // pairs with the daemon's release
      if (head_ - tail_seen_ >= slots_) return drop(hit);
    }
    RingSlot& slot = slots()[head_ & (slots_ - 1)];
    slot.key_hi = hit.key.hi;
    slot.key_lo = hit.key.lo;
    slot.stamp_us = hit.stamp_us;
    slot.rule = hit.rule;
    slot.cost = hit.cost;
    header()->head.store(++head_, std::memory_order_release);  // pairs with the daemon's acquire: the slot comes first
    return true;
  }

  /// A request was judged.
  void count_request() noexcept { raise(header()->requests); }
  /// A rule with a fuse blocked it, or would have. Not counted when kRingFusedMax other rules have places.
  void count_blocked(RuleNumber rule) noexcept;

  [[nodiscard]] int file_descriptor() const noexcept { return fd_.get(); }
  [[nodiscard]] const RingId& id() const noexcept { return id_; }
  /// Gives memory and descriptor back; record() must not be called again.
  void close() noexcept;

 private:
  // Plain read-modify-write, because the worker is the only writer; atomic, because the daemon reads at any time.
  static void raise(std::atomic<std::uint64_t>& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool drop(const Hit& hit) noexcept;
  [[nodiscard]] RingHeader* header() const noexcept { return reinterpret_cast<RingHeader*>(mapping_.data()); }
  [[nodiscard]] RingSlot* slots() const noexcept {
    return reinterpret_cast<RingSlot*>(mapping_.data() + ring_slots_offset());
  }

  FileDescriptor fd_;
  Mapping mapping_;
  RingId id_;
  std::uint32_t slots_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t tail_seen_ = 0;
};

}  // namespace popgate
