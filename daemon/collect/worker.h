// SPDX-License-Identifier: Apache-2.0
//
// One worker's attachment as the daemon sees it: its connection, its ring, and what it has been offered.
//
//     greeting ──kHello──► attached ──kGoodbye, end, fault──► leaving ──ring drained──► gone
//         └──────────────── fault, end ─────────────────────────────────────────────────►
//
// Threads: the event loop's.
// Invariants: 1. A leaving worker's ring is drained up to where it stood when it left, and no further: a process
//                that goes on writing into it keeps nobody busy.
//             2. Only the latest offer is ever owed: a worker that does not read holds up nothing.
// Limits: kWorkerMessagesPerTurn messages are read in one turn of the loop.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/collect/ring_reader.h"
#include "daemon/event_loop.h"
#include "libclient/attach_message.h"
#include "libclient/file_descriptor.h"
#include "libclient/instant.h"

struct event_base;

namespace popgate {

inline constexpr unsigned kWorkerMessagesPerTurn = 4;
inline constexpr milliseconds kHelloTimeout{5000};

/// What workers are given: read-only descriptors. A generation of 0: nothing yet.
struct WorkerOffer {
  FileDescriptor table;
  std::uint64_t table_bytes = 0;
  std::uint64_t table_generation = 0;
  FileDescriptor rules;
  std::uint64_t rules_bytes = 0;
  std::uint64_t rules_generation = 0;
};

class Worker {
 public:
  enum class State : std::uint8_t { kGreeting, kAttached, kLeaving, kGone };
  /// What a worker needs of those around it.
  struct Surroundings {
    event_base* base = nullptr;
    Ledger* ledger = nullptr;
    const WorkerOffer* offer = nullptr;
    std::function<bool(const RingId&)> ring_is_attached;
    std::function<void(const std::string& reason)> refused;  // the worker was refused or faulty: for counting and logs
    std::function<void()> attached;                          // a ring is to be polled from now on
  };

  /// `around` must outlive the worker.
  Worker(FileDescriptor socket, HostInstant now, const Surroundings& around);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const ucred& credentials() const { return credentials_; }
  /// Null unless attached or leaving.
  [[nodiscard]] RingReader* ring() const { return ring_.get(); }

  /// Sends the current offer if the worker has not had it.
  void deliver_offer();
  void refuse(const std::string& reason);
  /// Ends a greeting that takes too long.
  void expire_greeting(HostInstant now);
  /// Hits that are to be drained now: what look() finds, or what was left when the worker left.
  [[nodiscard]] std::uint64_t look();
  /// A leaving worker whose ring is drained and folded is gone.
  void finish_leaving();

 private:
  void on_event(short what);
  void receive();
  void accept_ring(FileDescriptor ring);
  void discard_messages();
  void leave();
  void disconnect();

  const Surroundings& around_;
  FileDescriptor socket_;
  ucred credentials_{};
  HostInstant accepted_at_;
  State state_ = State::kGreeting;
  std::unique_ptr<event, EventDeleter> readable_;
  std::unique_ptr<event, EventDeleter> writable_;
  std::unique_ptr<RingReader> ring_;
  std::uint64_t table_sent_ = 0;  // generations
  std::uint64_t rules_sent_ = 0;
};

}  // namespace popgate
