// SPDX-License-Identifier: Apache-2.0
//
// One shard as this node uses it: what is to be sent there, what came back, and whether it can be trusted.
//
// Increments are sent only to a shard that has just answered. After any failure it is first asked for its generation
// key, with a back-off: an increment sent to a shard that hangs would only become uncertain, while one that waits here
// is counted when the shard comes back, or expires with its slot.
//
// Threads: the event loop's.
// Invariants: 1. Every hit that was taken from a window comes back to it exactly once.
//             2. While the shard is not reachable no increment is sent.
// Limits: batches_in_flight batches of batch_keys_max keys or kBatchBytesMax bytes, whichever comes first; a creation
//         chain of kCreationRoundsMax commands, then the hits are uncertain.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/backoff.h"
#include "daemon/count/count_lag.h"
#include "daemon/count/counter_loss.h"
#include "daemon/count/counter_store.h"
#include "daemon/count/degraded_state.h"
#include "daemon/count/key_windows.h"
#include "daemon/count/shard_connection.h"
#include "daemon/count/shard_figures.h"
#include "daemon/log_limiter.h"

namespace popgate {

class Shard : private ShardConnectionOwner {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    std::string name;
    SocketAddress address;  // the shard's, or the proxy's
    CounterRingId ring = 0;
    std::string generation_tag;
    milliseconds timeout{0};
    std::uint32_t batches_in_flight = 2;
    std::uint32_t batch_keys_max = 1;
    microseconds settle{0};
    bool reads_only = false;  // nothing is added there: what is due is read
  };
  /// Told of every key once its totals are known, or once it is known that they are not (`fresh` is false).
  using ReportFunction = std::function<void(WindowIndex, bool fresh, PopInstant now)>;

  Shard(Setup setup, KeyWindows& windows, std::mt19937_64& random, ReportFunction report);

  /// A window of this shard has unsent hits, or is to be read.
  void add_due(WindowIndex index);
  /// Sends what can be sent now.
  void pump(PopInstant now);
  void tick(PopInstant now);
  /// While held, nothing is sent, as if the shard did not answer. It is degraded at once while the clock is off,
  /// because the reason is known, and not at all while the clock waits to be judged.
  void hold(Hold hold);

  /// The shard's memcached says so.
  void items_evicted(std::uint64_t items);
  /// Items were evicted before this daemon looked.
  void past_unknown() { loss_.note(setup_.reactor->wall_now()); }
  /// Whether its memcached can be asked for that: what nobody can see may have happened.
  void watched(bool watched);
  /// A check of the ring found probes of this shard elsewhere, or (`false`) where they should be.
  void misplaced(bool misplaced);
  /// Peers may have added to any slot, however old, until then.
  void peers_clear_since(PopInstant instant) { peers_clear_since_ = instant; }
  /// What peers are to know. Empty when there is nothing.
  [[nodiscard]] std::optional<ShardLag> lag(ShardIndex index) const;

  [[nodiscard]] bool is_reachable() const { return figures_.reachable; }
  /// It cannot be counted on: rules do what their on_counter_failure says.
  [[nodiscard]] bool is_degraded() const { return figures_.degraded; }
  [[nodiscard]] bool counters_lost(const WindowShape& shape, PopInstant now) const {
    return !figures_.watched || figures_.misplaced || loss_.affects(shape, now);
  }
  [[nodiscard]] const std::string& name() const { return setup_.name; }
  [[nodiscard]] const ShardFigures& figures() const { return figures_; }

 private:
  static constexpr std::size_t kBatchBytesMax = std::size_t{512} * 1024;
  static constexpr std::uint8_t kCreationRoundsMax = 3;
  static constexpr std::size_t kExpireKeysPerTick = 4096;
  static constexpr PopInstant kNever = PopInstant::min();
  static constexpr std::chrono::seconds kIdleProbeInterval{1};
  static constexpr milliseconds kRetryFirst{20};
  static constexpr milliseconds kRetryLongest{2000};

  void connected() override;
  void increment_answered(const ShardBatch& batch, const BatchIncrement& increment,
                          const MemcachedReply& reply) override;
  void increment_unanswered(const ShardBatch& batch, const BatchIncrement& increment, Unanswered how) override;
  void generation_answered(const MemcachedReply& reply) override;
  void read_answered(const ShardBatch& batch, const BatchRead& read, std::optional<std::uint64_t> value) override;
  void get_failed(std::string_view error) override;
  void batch_done(const ShardBatch& batch, bool complete, microseconds round_trip) override;
  void connection_ended(std::string_view reason, bool timed_out) override;

  void expire_due(PopInstant now);
  void send_batch(PopInstant now);
  void send_probe(PopInstant now);
  void send(std::unique_ptr<ShardBatch> batch);
  void put_chains(ShardBatch& batch);
  void put_due(ShardBatch& batch, PopInstant now);
  void put_increments(ShardBatch& batch, WindowIndex index);
  void put_reads(ShardBatch& batch, WindowIndex index, PopInstant now);
  void put_generation(ShardBatch& batch);
  void name_window(ShardBatch& batch, WindowIndex index);

  void executed(const ShardBatch& batch, const BatchIncrement& increment, std::uint64_t total);
  void chain(const ShardBatch& batch, const BatchIncrement& increment, bool creates);
  void server_error(const BatchIncrement& increment, const MemcachedReply& reply);
  void make_uncertain(const BatchIncrement& increment);
  void wait_for_tick(const BatchIncrement& increment);
  void abandon_chains();
  void observe(CountedSlot& slot, std::uint64_t total, PopInstant asked_at);
  void note_generation_loss();
  void note_loss(std::string_view sign, LogLimiter& limiter);
  void now_reachable(PopInstant now);
  void not_reachable(std::string_view reason);
  void try_again();
  void look_at_state();
  void look_at_waiting();
  [[nodiscard]] Finality finality() const { return {setup_.settle, std::max(reachable_since_, peers_clear_since_)}; }
  [[nodiscard]] bool is_held() const { return hold_ != Hold::kNone; }

  Setup setup_;
  KeyWindows& windows_;
  std::mt19937_64& random_;
  ReportFunction report_;
  std::string generation_key_;
  ShardConnection connection_;
  Timer retry_timer_;
  bool retry_waits_ = false;
  Hold hold_ = Hold::kNone;
  bool outage_told_ = false;
  Backoff backoff_;
  std::deque<WindowIndex> due_;
  std::vector<WindowIndex> next_tick_;  // put back for want of memory on the shard
  std::vector<BatchIncrement> chains_;  // go into the next batch
  std::uint32_t batch_number_ = 0;
  PopInstant last_batch_at_ = kNever;

  PopInstant reachable_since_ = kNever;
  PopInstant peers_clear_since_ = kNever;
  CounterLoss loss_;
  DegradedState state_;
  bool waiting_ = false;  // something is to be sent and was not
  HostInstant waiting_since_{};
  std::uint64_t uncertain_most_ = 0;  // of one key, until uncertain_until_
  PopInstant uncertain_until_ = kNever;
  ShardFigures figures_;
  LogLimiter log_limiter_;
  LogLimiter memory_log_limiter_;
  LogLimiter eviction_log_limiter_;  // the counters that are missed for it must not crowd out the reason
};

}  // namespace popgate
