// SPDX-License-Identifier: Apache-2.0
//
// The connection that carries one shard's batches, to the shard itself or to twemproxy, with every reply accounted for.
//
// One connection per shard also behind twemproxy: the replies of one of its client connections come in the order of the
// requests, so with a shared one a hanging shard would hold up the replies of all (measured: 400 ms
// instead of 2). Batches are pipelined: at least two in flight are worth half as much again in throughput.
//
// When a connection ends, for whatever reason, an increment without a reply was certainly not executed if not all of
// its command's bytes had been handed to the kernel (a line, or an add's data, that is not complete is never executed);
// otherwise nobody can know. The owner is told which.
//
// Threads: the event loop's.
// Invariants: 1. Every increment of a batch that was sent is answered to the owner exactly once.
//             2. batch_done comes exactly once for a batch, after everything else about it.
//             3. The owner may send from within every call but `connection_ended`.
// Limits: the owner bounds the batches in flight; a batch whose replies are not all here `timeout` after it became the
//         oldest ends the connection; time in which this process did not get to its loop does not count.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/count/memcached_reply.h"
#include "daemon/count/shard_batch.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"
#include "libclient/instant.h"

namespace popgate {

/// How an increment ended without a reply.
enum class Unanswered : std::uint8_t { kNeverSent, kUnknown };

class ShardConnectionOwner {
 public:
  virtual ~ShardConnectionOwner() = default;
  virtual void connected() = 0;
  virtual void increment_answered(const ShardBatch& batch, const BatchIncrement& increment,
                                  const MemcachedReply& reply) = 0;
  virtual void increment_unanswered(const ShardBatch& batch, const BatchIncrement& increment, Unanswered how) = 0;
  virtual void generation_answered(const MemcachedReply& reply) = 0;
  /// `value`: empty when the counter does not exist (or holds no number).
  virtual void read_answered(const ShardBatch& batch, const BatchRead& read, std::optional<std::uint64_t> value) = 0;
  /// A get of the batch was answered by an error; its reads are not answered.
  virtual void get_failed(std::string_view error) = 0;
  /// `complete`: every increment has a reply and every read was answered.
  virtual void batch_done(const ShardBatch& batch, bool complete, microseconds round_trip) = 0;
  virtual void connection_ended(std::string_view reason, bool timed_out) = 0;
};

class ShardConnection : private StreamOwner {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    SocketAddress address;
    milliseconds timeout{0};
  };
  ShardConnection(Setup setup, ShardConnectionOwner& owner);
  ~ShardConnection() override = default;
  ShardConnection(const ShardConnection&) = delete;
  ShardConnection& operator=(const ShardConnection&) = delete;

  /// Begins to connect; `connected` or `connection_ended` follows, within `timeout`.
  void open();
  /// Only while connected.
  void send(std::unique_ptr<ShardBatch> batch);
  [[nodiscard]] bool is_connected() const { return state_ == State::kConnected; }
  [[nodiscard]] bool is_closed() const { return state_ == State::kClosed; }
  [[nodiscard]] std::size_t batches_in_flight() const { return in_flight_.size(); }
  [[nodiscard]] const SocketAddress& address() const { return setup_.address; }

 private:
  enum class State : std::uint8_t { kClosed, kConnecting, kConnected };
  struct InFlight {
    std::unique_ptr<ShardBatch> batch;
    std::uint64_t begin_byte = 0;  // of its text, in all that was ever given to this connection
    HostInstant given_at{};
    std::size_t increments_answered = 0;
    std::size_t reads_answered = 0;  // values come in the order of the keys: what was skipped does not exist
    std::size_t reads_ended = 0;     // reads of gets that are over
    std::size_t get_end = 0;         // one past the last read of the get being answered
    bool generation_answered = false;
    bool complete = true;
  };

  void stream_connected() override;
  void stream_readable() override;
  void stream_ended(const std::string& why) override { end(why, false); }
  [[nodiscard]] bool take_reply(const MemcachedReply& reply);
  [[nodiscard]] bool take_increment_reply(InFlight& head, const MemcachedReply& reply);
  [[nodiscard]] bool take_get_reply(InFlight& head, const MemcachedReply& reply);
  [[nodiscard]] bool take_value(InFlight& head, const MemcachedReply& reply);
  [[nodiscard]] bool refuse(std::string_view what);
  void finish_if_done();
  void check_deadline();
  [[nodiscard]] microseconds check_interval() const;
  void end(std::string_view reason, bool timed_out);
  void account_unanswered(InFlight& flight, std::uint64_t handed_bytes);

  Setup setup_;
  ShardConnectionOwner& owner_;
  State state_ = State::kClosed;
  std::unique_ptr<Stream> stream_;
  MemcachedReplyParser parser_;
  Timer deadline_timer_;
  std::deque<InFlight> in_flight_;  // oldest first
  std::uint64_t given_bytes_ = 0;
  HostInstant oldest_since_{};  // since when the oldest batch, or the attempt to connect, is the oldest
  HostInstant last_check_{};
  std::string refusal_;
};

}  // namespace popgate
