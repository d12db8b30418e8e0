// SPDX-License-Identifier: Apache-2.0
//
// Watches one memcached's count of evictions, over a connection of its own straight to the server.
//
// A counter that memcached evicts is read as missing only if this node had read it before; a key that was never read
// would under-count in silence. The server's own count tells.
//
// Threads: the event loop's.
// Limits: one question every kInterval; a server that does not answer in time is asked again with the next.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/count/text_exchange.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"

namespace popgate {

class EvictionWatch {
 public:
  static constexpr std::chrono::seconds kInterval{5};

  /// `evicted` is told how many more items were evicted since the last answer, when any were.
  EvictionWatch(Reactor& reactor, Transport& transport, SocketAddress address, milliseconds timeout,
                std::function<void(std::uint64_t)> evicted);

  /// Asks now, unless it is asking already.
  void ask();
  [[nodiscard]] bool is_asking() const { return asking_; }

 private:
  void take(const MemcachedReply& reply);

  Reactor& reactor_;
  Transport& transport_;
  SocketAddress address_;
  milliseconds timeout_;
  std::function<void(std::uint64_t)> evicted_;
  std::optional<std::uint64_t> evictions_;
  std::unique_ptr<TextExchange> exchange_;
  bool asking_ = false;
  Timer timer_;
};

}  // namespace popgate
