// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/shard_connection.h"

#include <algorithm>

#include "daemon/result.h"

namespace popgate {
namespace {

constexpr int kDeadlineChecksPerTimeout = 8;
constexpr microseconds kDeadlineCheckMin{5'000};

// What may come back for an add (`creates`) or an incr; anything else means that replies and commands no longer match.
bool answers_increment(const MemcachedReply& reply, bool creates) {
  using Kind = MemcachedReply::Kind;
  if (reply.kind == Kind::kClientError || reply.kind == Kind::kServerError) return true;
  if (creates) return reply.kind == Kind::kStored || reply.kind == Kind::kNotStored;
  return reply.kind == Kind::kNumber || reply.kind == Kind::kNotFound;
}

// One past the last read of the get that begins at `begin`.
std::size_t end_of_get(const std::vector<BatchRead>& reads, std::size_t begin) {
  while (begin < reads.size() && !reads[begin].ends_get) ++begin;
  return std::min(begin + 1, reads.size());
}

}  // namespace

ShardConnection::ShardConnection(Setup setup, ShardConnectionOwner& owner)
    : setup_(setup), owner_(owner), deadline_timer_(*setup_.reactor, [this] { check_deadline(); }) {}

void ShardConnection::open() {
  POPGATE_ASSERT(state_ == State::kClosed);
  state_ = State::kConnecting;
  given_bytes_ = 0;
  parser_ = MemcachedReplyParser{};
  oldest_since_ = last_check_ = setup_.reactor->host_now();
  deadline_timer_.start_every(check_interval());
  stream_ = setup_.transport->dial(setup_.address, {});
  POPGATE_ASSERT(stream_ != nullptr);
  stream_->start(*this);
}

void ShardConnection::send(std::unique_ptr<ShardBatch> batch) {
  POPGATE_ASSERT(state_ == State::kConnected);
  const HostInstant now = setup_.reactor->host_now();
  if (in_flight_.empty()) oldest_since_ = now;
  const std::string& text = batch->text();
  stream_->write(text);
  InFlight flight;
  flight.begin_byte = given_bytes_;
  flight.given_at = now;
  given_bytes_ += text.size();
  flight.batch = std::move(batch);
  in_flight_.push_back(std::move(flight));
}

void ShardConnection::stream_connected() {
  state_ = State::kConnected;
  owner_.connected();
}

void ShardConnection::stream_readable() {
  bool good = true;
  while (good) {
    const std::string_view piece = stream_->peek();
    if (piece.empty()) return;
    const std::size_t bytes = piece.size();
    good = parser_.feed(piece, [this](const MemcachedReply& reply) { return take_reply(reply); });
    stream_->consume(bytes);
  }
  end(refusal_.empty() ? parser_.fault() : std::exchange(refusal_, {}), false);
}

bool ShardConnection::refuse(std::string_view what) {
  refusal_ = what;
  return false;
}

bool ShardConnection::take_reply(const MemcachedReply& reply) {
  if (in_flight_.empty()) return refuse("a reply that nothing was asked for");
  InFlight& head = in_flight_.front();
  const ShardBatch& batch = *head.batch;
  if (head.increments_answered < batch.increments().size()) return take_increment_reply(head, reply);
  if (batch.creates_generation() && !head.generation_answered) {
    if (!answers_increment(reply, true)) return refuse("a reply that is none to add");
    head.generation_answered = true;
    owner_.generation_answered(reply);
    return true;
  }
  return take_get_reply(head, reply);
}

bool ShardConnection::take_increment_reply(InFlight& head, const MemcachedReply& reply) {
  const BatchIncrement& increment = head.batch->increments()[head.increments_answered];
  if (!answers_increment(reply, increment.creates)) return refuse("a reply that is none to add or incr");
  ++head.increments_answered;
  if (reply.kind == MemcachedReply::Kind::kServerError) head.complete = false;
  owner_.increment_answered(*head.batch, increment, reply);
  // The data of a refused add may be taken for a command: from here on no reply is certain to belong to its command.
  if (increment.creates && reply.kind == MemcachedReply::Kind::kClientError) return refuse("an add was not understood");
  finish_if_done();
  return true;
}

bool ShardConnection::take_get_reply(InFlight& head, const MemcachedReply& reply) {
  const auto& reads = head.batch->reads();
  if (head.get_end <= head.reads_ended) head.get_end = end_of_get(reads, head.reads_ended);
  switch (reply.kind) {
    case MemcachedReply::Kind::kValue:
      return take_value(head, reply);
    case MemcachedReply::Kind::kEnd:
      while (head.reads_answered < head.get_end) {
        owner_.read_answered(*head.batch, reads[head.reads_answered++], std::nullopt);
      }
      break;
    case MemcachedReply::Kind::kServerError:
      head.complete = false;
      head.reads_answered = head.get_end;
      owner_.get_failed(reply.text);
      break;
    default:
      return refuse("a reply that is none to get");
  }
  head.reads_ended = head.get_end;
  finish_if_done();
  return true;
}

bool ShardConnection::take_value(InFlight& head, const MemcachedReply& reply) {
  const ShardBatch& batch = *head.batch;
  while (head.reads_answered < head.get_end) {
    const BatchRead& read = batch.reads()[head.reads_answered++];
    const bool found = batch.key_of(read) == reply.key;
    owner_.read_answered(batch, read, found && reply.is_number ? std::optional(reply.number) : std::nullopt);
    if (found) return true;
  }
  return refuse("a value that was not asked for, or out of order");
}

void ShardConnection::finish_if_done() {
  InFlight& head = in_flight_.front();
  const ShardBatch& batch = *head.batch;
  if (head.increments_answered < batch.increments().size() || head.reads_ended < batch.reads().size()) return;
  if (batch.creates_generation() && !head.generation_answered) return;
  const HostInstant now = setup_.reactor->host_now();
  const InFlight done = std::move(head);
  in_flight_.pop_front();
  oldest_since_ = now;
  owner_.batch_done(*done.batch, done.complete, now - done.given_at);
}

void ShardConnection::check_deadline() {
  // Time in which this process itself did not get to its loop is not the other side's: the replies may be waiting.
  const HostInstant now = setup_.reactor->host_now();
  const microseconds since_last = now - last_check_;
  if (since_last > 2 * check_interval()) oldest_since_ += since_last - check_interval();
  last_check_ = now;
  const bool waiting = state_ == State::kConnecting || !in_flight_.empty();
  if (!waiting || now - oldest_since_ < setup_.timeout) return;
  end("no reply within " + std::to_string(setup_.timeout.count()) + " ms", true);
}

microseconds ShardConnection::check_interval() const {
  return std::max<microseconds>(setup_.timeout / kDeadlineChecksPerTimeout, kDeadlineCheckMin);
}

void ShardConnection::end(std::string_view reason, bool timed_out) {
  const std::string kept_reason(reason);  // it may point into what is freed here
  const std::uint64_t handed_bytes = given_bytes_ - stream_->unsent_bytes();
  stream_.reset();
  state_ = State::kClosed;
  deadline_timer_.stop();
  std::deque<InFlight> unfinished;
  unfinished.swap(in_flight_);
  for (InFlight& flight : unfinished) account_unanswered(flight, handed_bytes);
  owner_.connection_ended(kept_reason, timed_out);
}

void ShardConnection::account_unanswered(InFlight& flight, std::uint64_t handed_bytes) {
  const ShardBatch& batch = *flight.batch;
  for (std::size_t i = flight.increments_answered; i < batch.increments().size(); ++i) {
    const BatchIncrement& increment = batch.increments()[i];
    const bool handed = flight.begin_byte + increment.end_byte <= handed_bytes;
    owner_.increment_unanswered(batch, increment, handed ? Unanswered::kUnknown : Unanswered::kNeverSent);
  }
  owner_.batch_done(batch, false, microseconds(0));
}

}  // namespace popgate
