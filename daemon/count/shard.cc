// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/shard.h"

#include <spdlog/spdlog.h>

#include "daemon/count/counter_key.h"
#include "daemon/rules.h"

namespace popgate {

Shard::Shard(Setup setup, KeyWindows& windows, std::mt19937_64& random, ReportFunction report)
    : setup_(std::move(setup)),
      windows_(windows),
      random_(random),
      report_(std::move(report)),
      generation_key_(own_key(setup_.ring, setup_.generation_tag, "generation")),
      connection_({setup_.reactor, setup_.transport, setup_.address, setup_.timeout}, *this),
      retry_timer_(*setup_.reactor, [this] { try_again(); }),
      backoff_(kRetryFirst, kRetryLongest) {
  connection_.open();
}

void Shard::add_due(WindowIndex index) {
  if (windows_.at(index).due) return;
  windows_.set_due(index, true);
  due_.push_back(index);
  look_at_waiting();
}

void Shard::pump(PopInstant now) {
  while (figures_.reachable && !is_held() && connection_.is_connected() &&
         connection_.batches_in_flight() < setup_.batches_in_flight && !(due_.empty() && chains_.empty())) {
    send_batch(now);
  }
  look_at_waiting();
}

void Shard::hold(Hold hold) {
  hold_ = hold;
  look_at_state();
}

void Shard::tick(PopInstant now) {
  look_at_state();
  for (const WindowIndex index : next_tick_) {
    windows_.set_due(index, false);
    add_due(index);
  }
  next_tick_.clear();
  if (is_held() || !figures_.reachable) {
    abandon_chains();  // of batches that were under way when the hold began; without one there are none
    return expire_due(now);
  }
  pump(now);
  const bool idle = connection_.is_connected() && connection_.batches_in_flight() == 0;
  if (idle && (now < last_batch_at_ || now - last_batch_at_ >= kIdleProbeInterval)) send_probe(now);
}

// While nothing can be sent, what waits too long must still make room.
void Shard::expire_due(PopInstant now) {
  for (std::size_t i = std::min(due_.size(), kExpireKeysPerTick); i > 0; --i) {
    const WindowIndex index = due_.front();
    due_.pop_front();
    windows_.expire(index, now);
    if (windows_.at(index).unsent > 0) {
      due_.push_back(index);
    } else {
      windows_.set_due(index, false);
    }
  }
}

// ---- What is sent -------------------------------------------------------------------------------------------------

void Shard::send_batch(PopInstant now) {
  auto batch = std::make_unique<ShardBatch>();
  batch->made_at = now;
  ++batch_number_;
  put_chains(*batch);
  put_due(*batch, now);
  if (batch->windows.empty()) return;  // everything that was due had expired
  put_generation(*batch);
  for (const WindowIndex index : batch->windows) put_reads(*batch, index, now);
  batch->add_read(kNoWindow, 0, generation_key_);
  send(std::move(batch));
}

void Shard::send_probe(PopInstant now) {
  auto batch = std::make_unique<ShardBatch>();
  batch->made_at = now;
  put_generation(*batch);
  batch->add_read(kNoWindow, 0, generation_key_);
  send(std::move(batch));
}

void Shard::send(std::unique_ptr<ShardBatch> batch) {
  batch->finish();
  last_batch_at_ = batch->made_at;
  ++figures_.batches;
  connection_.send(std::move(batch));
}

void Shard::name_window(ShardBatch& batch, WindowIndex index) {
  KeyWindow& window = windows_.at(index);
  if (window.batch == batch_number_) return;
  window.batch = batch_number_;
  windows_.pin(index);
  batch.windows.push_back(index);
}

// Chains of one batch are at most as many as its increments, so they fit the next one.
void Shard::put_chains(ShardBatch& batch) {
  for (const BatchIncrement& increment : chains_) {
    KeyWindow& window = windows_.at(increment.window);
    name_window(batch, increment.window);
    if (CountedSlot* const slot = KeyWindows::slot_of(window, increment.slot)) slot->batch = batch_number_;
    CounterNames names(setup_.ring, window.key, window.shape.slot);
    batch.add_increment(increment, names.of(increment.slot), counter_expiry(window.shape));
    --window.chained;
    windows_.unpin(increment.window);
  }
  chains_.clear();
}

void Shard::put_due(ShardBatch& batch, PopInstant now) {
  while (!due_.empty() && batch.windows.size() < setup_.batch_keys_max && batch.text().size() < kBatchBytesMax) {
    const WindowIndex index = due_.front();
    due_.pop_front();
    windows_.expire(index, now);
    if (windows_.at(index).unsent > 0 || setup_.reads_only) {
      name_window(batch, index);
      put_increments(batch, index);
    }
    windows_.set_due(index, false);
  }
}

void Shard::put_increments(ShardBatch& batch, WindowIndex index) {
  KeyWindow& window = windows_.at(index);
  CounterNames names(setup_.ring, window.key, window.shape.slot);
  const std::chrono::seconds expiry = counter_expiry(window.shape);
  for (CountedSlot& slot : window.slots) {
    if (slot.unsent == 0) continue;
    BatchIncrement increment;
    increment.window = index;
    increment.slot = slot.slot;
    increment.creates = !slot.touched && slot.last_read == 0;
    increment.waits_since = waiting_ ? waiting_since_ : setup_.reactor->host_now();
    increment.hits = windows_.begin_send(index, slot);
    slot.touched = true;
    slot.batch = batch_number_;
    batch.add_increment(increment, names.of(slot.slot), expiry);
  }
}

// Every slot that touches the window, except those that the batch adds to (their replies tell the total) and those to
// which nothing can be added any more.
void Shard::put_reads(ShardBatch& batch, WindowIndex index, PopInstant now) {
  KeyWindow& window = windows_.at(index);
  const KeySlots slots = window.key_slots();
  CounterNames names(setup_.ring, window.key, window.shape.slot);
  for (SlotIndex slot = slots.first_touching(now); slot <= slots.last_touching(now); ++slot) {
    const CountedSlot& held = windows_.add_slot(window, slot);
    if (held.batch == batch_number_ || KeyWindows::is_final(window, held, finality())) continue;
    batch.add_read(index, slot, names.of(slot));
  }
}

void Shard::put_generation(ShardBatch& batch) {
  if (is_held()) return;  // it bears the time: others will put it there
  const PopInstant now = batch.made_at;
  if (loss_.take_missing_generation()) {
    batch.add_generation(generation_key_, CounterLoss::new_generation(now, random_()));
  }
}

// ---- What comes back ----------------------------------------------------------------------------------------------

void Shard::increment_answered(const ShardBatch& batch, const BatchIncrement& increment, const MemcachedReply& reply) {
  using Kind = MemcachedReply::Kind;
  switch (reply.kind) {
    case Kind::kStored:
      return executed(batch, increment, increment.hits);
    case Kind::kNumber:
      return executed(batch, increment, reply.number);
    case Kind::kNotFound:
      return chain(batch, increment, true);
    case Kind::kNotStored:
      return chain(batch, increment, false);
    case Kind::kClientError:
      figures_.refused += increment.hits;
      return windows_.refused(increment.window, increment.slot, increment.hits);
    default:
      return server_error(increment, reply);
  }
}

void Shard::executed(const ShardBatch& batch, const BatchIncrement& increment, std::uint64_t total) {
  CountedSlot* const slot = KeyWindows::slot_of(windows_.at(increment.window), increment.slot);
  if (increment.creates && slot->last_read > 0) observe(*slot, 0, batch.made_at);
  observe(*slot, total, batch.made_at);
  figures_.delivered += increment.hits;
  windows_.delivered(increment.window, increment.slot, increment.hits);
}

// The counter was not there (an add is next) or there already (an incr is next). Its hits stay in flight.
void Shard::chain(const ShardBatch& batch, const BatchIncrement& increment, bool creates) {
  KeyWindow& window = windows_.at(increment.window);
  CountedSlot* const slot = KeyWindows::slot_of(window, increment.slot);
  if (creates && slot->last_read > 0) observe(*slot, 0, batch.made_at);
  if (increment.rounds >= kCreationRoundsMax) return make_uncertain(increment);
  BatchIncrement next = increment;
  next.creates = creates;
  ++next.rounds;
  ++window.chained;
  windows_.pin(increment.window);
  chains_.push_back(next);
}

void Shard::server_error(const BatchIncrement& increment, const MemcachedReply& reply) {
  if (execution_of(reply) == Execution::kUncertain) {
    make_uncertain(increment);
    return not_reachable(reply.text);
  }
  wait_for_tick(increment);
  if (reply.text == "Connection refused") return not_reachable(reply.text);
  ++figures_.refused_for_memory;
  if (!memory_log_limiter_.allow(setup_.reactor->host_now())) return;
  spdlog::warn("count: shard {} has no memory for a counter ({}); its hits wait, and expire with their slot",
               setup_.name, reply.text);
}

void Shard::make_uncertain(const BatchIncrement& increment) {
  figures_.uncertain += increment.hits;
  windows_.uncertain(increment.window, increment.slot, increment.hits);
  const KeyWindow& window = windows_.at(increment.window);
  std::uint64_t of_key = 0;
  for (const CountedSlot& slot : window.slots) of_key += slot.uncertain;
  if (uncertain_until_ <= setup_.reactor->wall_now()) uncertain_most_ = 0;
  uncertain_most_ = std::max(uncertain_most_, of_key);
  const PopInstant leaves = window.key_slots().end(increment.slot) + window.shape.window + window.shape.tolerance;
  uncertain_until_ = std::max(uncertain_until_, leaves);
}

// Not sent again at once: a shard without memory would be asked in a tight loop.
void Shard::wait_for_tick(const BatchIncrement& increment) {
  KeyWindow& window = windows_.at(increment.window);
  if (CountedSlot* const slot = KeyWindows::slot_of(window, increment.slot); slot != nullptr && increment.creates) {
    slot->touched = false;
  }
  windows_.put_back(increment.window, increment.slot, increment.hits);
  waiting_since_ = waiting_ ? std::min(waiting_since_, increment.waits_since) : increment.waits_since;
  waiting_ = true;
  if (window.due) return;
  windows_.set_due(increment.window, true);
  next_tick_.push_back(increment.window);
}

void Shard::increment_unanswered(const ShardBatch& /*batch*/, const BatchIncrement& increment, Unanswered how) {
  if (how == Unanswered::kUnknown) return make_uncertain(increment);
  wait_for_tick(increment);
}

void Shard::abandon_chains() {
  for (const BatchIncrement& increment : chains_) {
    --windows_.at(increment.window).chained;
    wait_for_tick(increment);
    windows_.unpin(increment.window);
  }
  chains_.clear();
}

void Shard::read_answered(const ShardBatch& batch, const BatchRead& read, std::optional<std::uint64_t> value) {
  if (read.window == kNoWindow) {
    if (loss_.generation_read(value, batch.made_at, setup_.reactor->wall_now())) note_generation_loss();
    return;
  }
  CountedSlot* const slot = KeyWindows::slot_of(windows_.at(read.window), read.slot);
  if (slot == nullptr) return;  // it left the window meanwhile
  observe(*slot, value.value_or(0), batch.made_at);
}

void Shard::note_generation_loss() {
  ++figures_.generation_changes;
  note_loss("its generation key is gone or another", log_limiter_);
}

void Shard::observe(CountedSlot& slot, std::uint64_t total, PopInstant asked_at) {
  if (!loss_.slot_read(slot, total, asked_at, setup_.reactor->wall_now())) return;
  ++figures_.totals_fallen;
  note_loss("a total fell", log_limiter_);
}

void Shard::get_failed(std::string_view error) { not_reachable(error); }

void Shard::batch_done(const ShardBatch& batch, bool complete, microseconds round_trip) {
  const PopInstant now = setup_.reactor->wall_now();
  if (complete) {
    figures_.round_trip = round_trip;
    if (!figures_.reachable) now_reachable(now);
  }
  // An answer that was in time, and is looked at late because this process stood still, is no fresh one.
  const bool in_time = complete && round_trip <= setup_.timeout;
  for (const WindowIndex index : batch.windows) {
    const KeyWindow& window = windows_.at(index);
    if (window.chained > 0) continue;  // with the batch that ends its chain
    const bool fresh = in_time && KeyWindows::is_read_since(window, batch.made_at, finality());
    report_(index, fresh, now);
  }
  for (const WindowIndex index : batch.windows) windows_.unpin(index);
  if (!figures_.reachable) return abandon_chains();
  pump(now);
}

// ---- Whether it can be trusted ------------------------------------------------------------------------------------

void Shard::connected() { send_probe(setup_.reactor->wall_now()); }

void Shard::now_reachable(PopInstant now) {
  figures_.reachable = true;
  outage_told_ = false;
  reachable_since_ = now;
  backoff_.reset();
  look_at_state();
  if (log_limiter_.allow(setup_.reactor->host_now())) {
    spdlog::info("count: shard {} answers at {}", setup_.name, setup_.address.text());
  }
}

// Also while it was not reachable before: each failure asks for one more attempt, later. Told once an outage.
void Shard::not_reachable(std::string_view reason) {
  if (!outage_told_ && log_limiter_.allow(setup_.reactor->host_now())) {
    spdlog::warn("count: shard {} at {}: {}; until it answers, {}{}", setup_.name, setup_.address.text(), reason,
                 setup_.reads_only ? "upper bounds of its keys are unknown"
                                   : "its keys are judged by what is known and this node's own hits",
                 log_limiter_.withheld_text());
  }
  outage_told_ = true;
  figures_.reachable = false;
  look_at_state();
  abandon_chains();
  if (retry_waits_) return;
  retry_waits_ = true;
  retry_timer_.start_once(backoff_.next(random_));
}

// Also between ticks, when it has just failed or answered.
void Shard::look_at_state() {
  if (setup_.reads_only) return;  // what it cannot tell leaves the upper bound unknown; nothing is counted there
  (void)state_.look(figures_.reachable, setup_.reactor->host_now());
  const bool degraded = hold_ == Hold::kClockOff || state_.is_degraded();
  if (degraded == figures_.degraded) return;
  figures_.degraded = degraded;
  ++(degraded ? figures_.degraded_entered : figures_.degraded_left);
  if (!log_limiter_.allow(setup_.reactor->host_now())) return;
  if (degraded) {
    spdlog::warn("count: shard {} cannot be counted on: rules do what on_counter_failure says for its keys",
                 setup_.name);
  } else {
    spdlog::info("count: shard {} can be counted on again", setup_.name);
  }
}

void Shard::try_again() {
  retry_waits_ = false;
  if (connection_.is_closed()) return connection_.open();
  if (figures_.reachable || !connection_.is_connected()) return;
  if (connection_.batches_in_flight() == 0) return send_probe(setup_.reactor->wall_now());
  retry_waits_ = true;  // what is in flight will tell
  retry_timer_.start_once(backoff_.next(random_));
}

void Shard::connection_ended(std::string_view reason, bool timed_out) {
  ++figures_.disconnects;
  if (timed_out) ++figures_.timeouts;
  loss_.connection_ended();
  not_reachable(reason);
}

void Shard::generation_answered(const MemcachedReply& /*reply*/) {}  // the read behind it tells what stands there now

void Shard::watched(bool watched) {
  if (figures_.watched == watched) return;
  figures_.watched = watched;
  if (!eviction_log_limiter_.allow(setup_.reactor->host_now())) return;
  if (watched) {
    spdlog::info("count: shard {}: its statistics can be read again", setup_.name);
  } else {
    spdlog::warn(
        "count: shard {}: its statistics cannot be read, so evictions would not be seen; upper bounds of its keys "
        "are unknown meanwhile",
        setup_.name);
  }
}

void Shard::misplaced(bool misplaced) {
  if (misplaced || figures_.misplaced) loss_.note(setup_.reactor->wall_now());
  figures_.misplaced = misplaced;
  if (!misplaced) return;
  ++figures_.misplacements;
  note_loss("probes that belong on it were found elsewhere or nowhere: see popgatectl ring-check", log_limiter_);
}

std::optional<ShardLag> Shard::lag(ShardIndex index) const {
  ShardLag lag{.shard = index};
  if (waiting_) lag.waiting = setup_.reactor->host_now() - waiting_since_;
  if (uncertain_until_ > setup_.reactor->wall_now()) {
    lag.uncertain_most = uncertain_most_;
    lag.uncertain_until = uncertain_until_;
  }
  const bool says_something = lag.waiting.count() > 0 || lag.uncertain_most > 0;
  return says_something ? std::optional(lag) : std::nullopt;
}

// A shard that keeps up has nothing left to send after each flush.
void Shard::look_at_waiting() {
  const bool waits = !due_.empty() || !next_tick_.empty() || !chains_.empty();
  if (waits && !waiting_) waiting_since_ = setup_.reactor->host_now();
  waiting_ = waits;
}

void Shard::items_evicted(std::uint64_t items) {
  figures_.evictions += items;
  loss_.note(setup_.reactor->wall_now());
  note_loss("memcached evicted items: give it more memory", eviction_log_limiter_);
}

void Shard::note_loss(std::string_view sign, LogLimiter& limiter) {
  ++figures_.losses;
  if (!limiter.allow(setup_.reactor->host_now())) return;
  spdlog::warn("count: shard {} lost counters ({}); upper bounds of its keys are unknown for a window", setup_.name,
               sign);
}

}  // namespace popgate
