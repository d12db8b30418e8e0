// SPDX-License-Identifier: Apache-2.0
//
// One worker's client: its ring, its connection to the daemon, and what it checks requests against. The C ABI
// (popgate.cc) is a thin layer over it.
//
// Threads: as popgate.h says: one thread owns a client. With a tick thread, tick() runs on that and everything else on
//          the owner's; what both touch is in Snapshots (argued there), counted in relaxed atomics that each have one
//          writer, or set before the thread starts. statistics() may be called by any thread.
// Invariants: 1. check(), check_key() and peek() make no system call, take no lock, allocate nothing, and pass whatever
//                is wrong.
//             2. When the daemon goes away, the last table and rules stay in force until a new daemon's arrive.
//             3. In the child of a fork nothing that is shared with the parent is written: checks pass and are counted
//                as invalid.
// Limits: kMessagesPerTick messages of the daemon are taken per tick.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "libclient/attach.h"
#include "libclient/fork_guard.h"
#include "libclient/include/popgate/popgate.h"
#include "libclient/match/matcher.h"
#include "libclient/match/request.h"
#include "libclient/record/hit_ring.h"
#include "libclient/snapshots.h"
#include "libclient/tick_thread.h"
#include "libclient/verdict.h"

namespace popgate {

inline constexpr unsigned kMessagesPerTick = 8;

class Client {
 public:
  struct Options {
    std::string_view socket_path;
    std::string_view worker_name;
    std::uint32_t ring_slots = kRingSlotsDefault;
    bool tick_thread = false;
  };

  /// Call once; on anything but POPGATE_OK the client is good for nothing but destruction.
  [[nodiscard]] popgate_result open(const Options& options) noexcept;
  /// Ends the tick thread and the attachment. In the child of a fork it only lets go of what it inherited.
  void close() noexcept;

  void tick() noexcept;
  [[nodiscard]] bool has_tick_thread() const noexcept { return tick_thread_.is_running(); }
  [[nodiscard]] bool in_forked_child() const noexcept { return !guard_.is_original(); }
  [[nodiscard]] int descriptor() const noexcept { return in_forked_child() ? -1 : attachment_.descriptor(); }

  /// `verdict`, when not null, has been cleared.
  [[nodiscard]] popgate_result check(const Request& request, popgate_verdict* verdict) noexcept;
  [[nodiscard]] popgate_result check_key(std::string_view rule, std::span<const std::byte> key,
                                         popgate_verdict* verdict) noexcept;
  [[nodiscard]] popgate_result peek(const Request& request, popgate_verdict* verdict) noexcept;
  /// A check whose arguments were refused: passes.
  popgate_result refuse_check() noexcept;

  /// Behind the trusted proxies of the rules; the peer itself while there are none. False: the peer is no address.
  [[nodiscard]] bool client_address(std::string_view peer, std::string_view forwarded_for, ClientAddress& out) noexcept;

  void statistics(popgate_statistics& out) const noexcept;

 private:
  // One writer, any number of readers.
  class Counter {
   public:
    void add(std::uint64_t n) noexcept { value_.store(get() + n, std::memory_order_relaxed); }
    void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<std::uint64_t> value_{0};
  };
  struct CheckFigures {  // written by the owner
    Counter checks, detached, invalid, blocked, would_block, recorded, dropped, truncated;
  };
  struct TickFigures {  // written by whoever ticks
    Counter attaches, refused, attached;
  };

  void let_go() noexcept;
  void attach(Attachment::Event event, const AttachMessage& message, AttachDescriptors& descriptors) noexcept;
  [[nodiscard]] bool map_pair(Snapshot& pair, int rules, std::uint64_t rules_bytes) noexcept;
  /// What matches_ holds is decided.
  popgate_result conclude(const Snapshot& pair, popgate_verdict* verdict) noexcept;
  void record(const Snapshot& pair, std::uint32_t counted) noexcept;
  void record_one(const Hit& hit) noexcept;
  [[nodiscard]] std::uint8_t chance() noexcept;

  // The owner's.
  HitRing ring_;
  Matches matches_;  // a member, because clearing it for every check would cost 25 ns
  std::uint64_t random_ = 1;
  CheckFigures checks_;
  ForkGuard guard_;
  Snapshots snapshots_;
  // Of whoever ticks.
  alignas(64) Attachment attachment_;
  FileDescriptor table_;  // kept, because a reload of the rules maps it once more beside them
  std::uint64_t table_bytes_ = 0;
  TickFigures ticks_;
  TickThread tick_thread_;
};

}  // namespace popgate
