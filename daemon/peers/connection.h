// SPDX-License-Identifier: Apache-2.0
//
// One stream that carries frames of the mesh, whichever side opened it.
//
// Threads: the event loop's.
// Invariants: 1. on_lost is called once at most, and nothing is called after it or after shut().
//             2. The object outlives each of its callbacks, so that its owner may let go of it in one.
// Limits: `output_bytes_max` wait to be sent; send() then says no, and the owner cuts the connection. Input is taken
//         as it comes; one incomplete frame is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/peers/frame.h"
#include "daemon/peers/wire.h"
#include "daemon/transport.h"

namespace popgate {

struct ConnectionCounts {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
};

class Connection : public std::enable_shared_from_this<Connection>, private StreamOwner {
 public:
  struct Loss {
    std::string why;
    bool rubbish = false;  // the peer sent what is no message of ours
    bool refused = false;  // one side does not accept the other
  };
  struct Events {
    std::function<void()> on_connected;
    std::function<void(const wire::Message&)> on_message;
    std::function<void()> on_batch_read;  // all messages of one read were handed over
    std::function<void()> on_drained;
    std::function<void(const Loss&)> on_lost;
  };

  /// Over a stream of a Transport, not started yet.
  [[nodiscard]] static std::shared_ptr<Connection> over(std::unique_ptr<Stream> stream, std::size_t output_bytes_max,
                                                        Events events);
  ~Connection() override = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// False when too much waits already; the message is not sent then.
  [[nodiscard]] bool send(const wire::Message& message);
  /// As much as the kernel takes at once, then closed.
  void send_last(const wire::Message& message);
  /// Closed at once; nothing is called back any more.
  void shut();
  [[nodiscard]] bool is_open() const { return stream_ != nullptr; }
  [[nodiscard]] std::size_t output_bytes() const;
  [[nodiscard]] std::string proven_name() const { return is_open() ? stream_->proven_name() : std::string(); }
  [[nodiscard]] const ConnectionCounts& counts() const { return counts_; }
  [[nodiscard]] std::optional<microseconds> round_trip() const;
  /// The peer's message does not belong here: cuts the connection as for any other rubbish.
  void refuse(const std::string& why) { lose({why, true}); }

 private:
  Connection(std::unique_ptr<Stream> stream, std::size_t output_bytes_max, Events events);
  void stream_connected() override;
  void stream_readable() override;
  void stream_drained() override;
  void stream_ended(const std::string& why) override;
  void read_frames();
  void lose(const Loss& loss);

  std::unique_ptr<Stream> stream_;
  std::size_t output_bytes_max_;
  Events events_;
  FrameReader reader_;
  ConnectionCounts counts_;
};

}  // namespace popgate
