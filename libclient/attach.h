// SPDX-License-Identifier: Apache-2.0
//
// The worker's connection to the daemon: finds it, hands it the ring, receives table and rules, notices its end.
//
// Threads: one at a time; descriptor() may be asked by any.
// Invariants: 1. Nothing blocks: connecting to a Unix socket either succeeds at once or fails at once.
//             2. At most one attempt to connect per call of poll(), and none before the backoff is over: 100 ms after
//                the first failure, doubling to kAttachBackoffMax, each shortened by up to a half at random, so that
//                the workers of a host do not come back in step.
// Limits: a socket path of 107 bytes.
#pragma once

#include <sys/un.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "libclient/attach_message.h"
#include "libclient/file_descriptor.h"
#include "libclient/instant.h"

namespace popgate {

inline constexpr milliseconds kAttachBackoffFirst{100};
inline constexpr milliseconds kAttachBackoffMax{1000};
/// A daemon that accepts and says nothing for so long is left and tried again.
inline constexpr milliseconds kWelcomeTimeout{5000};

class Attachment {
 public:
  enum class Event {
    kNothing,
    kWelcome,  // message and descriptors hold table and rules
    kRules,    // message and descriptors hold rules
    kEnded,    // the daemon went away
    kRefused   // the daemon refused this worker, or sent what cannot be understood; the connection is closed
  };

  /// False when the path is empty or too long.
  [[nodiscard]] bool set_path(std::string_view socket_path) noexcept;
  void set_seed(std::uint64_t seed) noexcept { random_ = seed | 1; }

  /// Connects when it is time to, and takes the next message. Call until kNothing.
  [[nodiscard]] Event poll(HostInstant now, int ring, AttachMessage& message, AttachDescriptors& descriptors) noexcept;
  /// Closes the connection because of what came over it; the next attempt is kAttachBackoffMax away.
  void refuse(HostInstant now) noexcept;
  /// Tells the daemon that the worker ends, and closes.
  void say_goodbye() noexcept;
  /// Closes without a word: in a child process, where the connection is the parent's.
  void abandon() noexcept;

  /// -1 while not connected.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_attached() const noexcept { return welcomed_; }

 private:
  void connect(HostInstant now, int ring) noexcept;
  void keep(FileDescriptor socket) noexcept;
  void disconnect(HostInstant now) noexcept;
  [[nodiscard]] Event end(HostInstant now, Event event) noexcept;

  sockaddr_un address_{};
  FileDescriptor socket_;
  std::atomic<int> descriptor_{-1};  // socket_'s; written by the polling thread, read by any, guards nothing
  bool welcomed_ = false;
  HostInstant connected_at_{};
  HostInstant next_attempt_{};
  milliseconds backoff_ = kAttachBackoffFirst;
  std::uint64_t random_ = 1;
};

}  // namespace popgate
