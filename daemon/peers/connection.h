// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection that carries frames of the mesh, whichever side opened it.
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
#include <string>

#include "daemon/peers/frame.h"
#include "daemon/peers/wire.h"
#include "daemon/socket_address.h"

struct bufferevent;
struct event_base;

namespace popgate {

/// When less than this waits to be sent, on_drained is called.
inline constexpr std::size_t kDrainedBytes = 64 * 1024;

struct ConnectionCounts {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Loss {
    std::string why;
    bool rubbish = false;  // the peer sent what is no message of ours
  };
  struct Events {
    std::function<void()> on_connected;  // of a dialled one
    std::function<void(const wire::Message&)> on_message;
    std::function<void()> on_batch_read;  // all messages of one read were handed over
    std::function<void()> on_drained;
    std::function<void(const Loss&)> on_lost;
  };

  /// Null when the kernel gives no socket.
  [[nodiscard]] static std::shared_ptr<Connection> dial(event_base* base, const SocketAddress& address,
                                                        std::size_t output_bytes_max, Events events);
  /// Takes over the descriptor.
  [[nodiscard]] static std::shared_ptr<Connection> accepted(event_base* base, int descriptor,
                                                            std::size_t output_bytes_max, Events events);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// False when too much waits already; the message is not sent then.
  [[nodiscard]] bool send(const wire::Message& message);
  /// As much as the kernel takes at once, then closed.
  void send_last(const wire::Message& message);
  /// Closed at once; nothing is called back any more.
  void shut();
  [[nodiscard]] bool is_open() const { return bev_ != nullptr; }
  [[nodiscard]] std::size_t output_bytes() const;
  [[nodiscard]] const ConnectionCounts& counts() const { return counts_; }
  /// The peer's message does not belong here: cuts the connection as for any other rubbish.
  void refuse(const std::string& why) { lose({why, true}); }

 private:
  Connection(std::size_t output_bytes_max, Events events);
  void take(bufferevent* bev);
  void on_readable();
  void on_event(short what);
  void read_frames();
  void lose(const Loss& loss);

  bufferevent* bev_ = nullptr;
  std::size_t output_bytes_max_;
  Events events_;
  FrameReader reader_;
  ConnectionCounts counts_;
};

}  // namespace popgate
