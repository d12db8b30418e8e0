// SPDX-License-Identifier: Apache-2.0
//
// TCP and Unix sockets on the event loop, by libevent's bufferevents.
//
// Threads: the event loop's.
// Limits: a turn of the loop reads kReadBytesMax and writes kWriteBytesMax of a stream (libevent's own 16 KiB cost a
//         system call per 300 counters); kListenBacklog connections wait in the kernel; after a connection could not be
//         accepted nothing is accepted for kListenPause, because it keeps the socket readable and the loop would spin.
#pragma once

#include "daemon/event_loop.h"
#include "daemon/transport.h"

struct bufferevent;

namespace popgate {

inline constexpr std::size_t kReadBytesMax = std::size_t{256} * 1024;
inline constexpr std::size_t kWriteBytesMax = std::size_t{1024} * 1024;
inline constexpr int kListenBacklog = 64;
inline constexpr milliseconds kListenPause{100};

class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(EventLoop& loop) : loop_(loop) {}
  [[nodiscard]] std::unique_ptr<Stream> dial(const SocketAddress& address, const std::string& name) override;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const SocketAddress& address,
                                                         AcceptFunction accepted) override;

 private:
  EventLoop& loop_;
};

/// Accepts on a socket and hands over descriptors.
[[nodiscard]] Result<std::unique_ptr<Listener>> listen_on(
    EventLoop& loop, const SocketAddress& address,
    std::function<void(int descriptor, const SocketAddress& remote)> accepted);

}  // namespace popgate
