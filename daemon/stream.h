// SPDX-License-Identifier: Apache-2.0
//
// Bytes to and from one other process, whatever carries them: a socket, a socket under TLS, a simulated network.
//
// Threads: the loop's.
// Invariants: 1. The owner is called from the loop only, never from within a call that it made.
//             2. stream_ended comes once at most, and last; nothing is called after the stream was destroyed, and the
//                owner may destroy it from within any call.
//             3. Bytes leave and arrive in order. What `unsent_bytes` counts was certainly not received by anybody.
// Limits: the owner bounds what waits to be sent, by unsent_bytes().
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "libclient/instant.h"

namespace popgate {

/// When less than this waits to be sent, stream_drained is called.
inline constexpr std::size_t kDrainedBytes = std::size_t{64} * 1024;

class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  /// The other side is there, and (where the transport proves it) is who it should be. Dialled and accepted alike.
  virtual void stream_connected() = 0;
  /// There is input to take.
  virtual void stream_readable() = 0;
  virtual void stream_drained() {}
  virtual void stream_ended(const std::string& why) = 0;
};

class Stream {
 public:
  /// Closes at once.
  virtual ~Stream() = default;

  /// From now on the owner is called; what is dialled begins to connect.
  virtual void start(StreamOwner& owner) = 0;
  virtual void write(std::string_view bytes) = 0;
  /// Hands to the kernel what it takes now, without waiting for the loop: before a close.
  virtual void flush() = 0;
  /// Written, and not handed over yet.
  [[nodiscard]] virtual std::size_t unsent_bytes() const = 0;

  /// The next piece of input, in place; empty when there is none. Valid until consume().
  [[nodiscard]] virtual std::string_view peek() = 0;
  virtual void consume(std::size_t bytes) = 0;

  /// How long the other side takes to answer, as far as the transport can tell; empty until it has answered once.
  [[nodiscard]] virtual std::optional<microseconds> round_trip() const { return std::nullopt; }
  /// Once it has ended: because one side does not accept the other, which another attempt will not change soon.
  [[nodiscard]] virtual bool is_refused() const { return false; }
  /// The name that the other side proved to have; empty where the transport proves none.
  [[nodiscard]] virtual std::string proven_name() const { return {}; }
};

}  // namespace popgate
