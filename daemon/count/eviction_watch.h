// SPDX-License-Identifier: Apache-2.0
//
// Watches one memcached's count of evictions, over a connection of its own straight to the server.
//
// A counter that memcached evicts is read as missing only if this node had read it before; a key that was never read
// would under-count in silence. The server's own count tells.
//
// Threads: the event loop's.
// Limits: one question every kInterval; a server that does not answer in time is asked again with the next. An
//         eviction is seen up to kInterval later.
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
  static constexpr milliseconds kInterval{5000};
  /// So many intervals without an answer: it sees nothing.
  static constexpr int kBlindAfter = 3;

  struct Events {
    /// How many more items were evicted since the last answer, when any were.
    std::function<void(std::uint64_t)> evicted;
    /// The first answer tells of evictions: nobody knows when they were.
    std::function<void()> evicted_before;
    /// False when no answer has come for kBlindAfter intervals; true with the next. What was evicted meanwhile is told
    /// then.
    std::function<void(bool)> sees;
  };
  EvictionWatch(Reactor& reactor, Transport& transport, SocketAddress address, milliseconds timeout, Events events,
                milliseconds interval = kInterval);

  /// Asks now, unless it is asking already.
  void ask();
  [[nodiscard]] bool is_asking() const { return asking_; }

 private:
  void take(const MemcachedReply& reply);

  Reactor& reactor_;
  Transport& transport_;
  SocketAddress address_;
  milliseconds timeout_;
  milliseconds interval_;
  Events events_;
  HostInstant answered_at_;
  std::optional<std::uint64_t> evictions_;
  std::unique_ptr<TextExchange> exchange_;
  bool asking_ = false;
  Timer timer_;
};

}  // namespace popgate
