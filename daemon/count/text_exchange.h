// SPDX-License-Identifier: Apache-2.0
//
// One short conversation with a memcached or a twemproxy: connect, send some commands, read their replies, hang up.
//
// For what is asked beside counting (ring check, statistics); counting has ShardConnection.
//
// Threads: the event loop's.
// Invariants: 1. `ended` is called exactly once, last, and never from within the constructor. The exchange may not be
//                destroyed from within it.
// Limits: it ends after `timeout`, whatever the other side does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "daemon/count/memcached_reply.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"
#include "libclient/instant.h"

namespace popgate {

class TextExchange : private StreamOwner {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    SocketAddress address;
    std::string commands;
    std::size_t replies = 0;  // values and statistics are part of the reply that their END completes
    milliseconds timeout{0};
  };
  using ReplyFunction = std::function<void(const MemcachedReply&)>;
  /// `fault` is empty when every reply came.
  using EndFunction = std::function<void(const std::string& fault)>;

  TextExchange(Setup setup, ReplyFunction reply, EndFunction ended);
  ~TextExchange() override = default;
  TextExchange(const TextExchange&) = delete;
  TextExchange& operator=(const TextExchange&) = delete;

 private:
  void start();
  void stream_connected() override {}
  void stream_readable() override;
  void stream_ended(const std::string& why) override { end(why); }
  void end(const std::string& fault);

  Setup setup_;
  ReplyFunction reply_;
  EndFunction ended_;
  MemcachedReplyParser parser_;
  std::unique_ptr<Stream> stream_;
  Timer timer_;  // first to begin on the loop, then the deadline
  bool over_ = false;
};

}  // namespace popgate
