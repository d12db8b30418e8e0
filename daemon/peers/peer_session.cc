// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/peer_session.h"

#include <algorithm>
#include <utility>

namespace popgate {

PeerSession::PeerSession(MeshContext& context, std::string remote, std::unique_ptr<Stream> stream, const Events& events)
    : context_(context), events_(events), remote_(std::move(remote)), last_heard_(context.reactor.host_now()) {
  connection_ = Connection::over(std::move(stream), context.output_bytes_max,
                                 {.on_connected = {},
                                  .on_message = [this](const wire::Message& message) { on_message(message); },
                                  .on_batch_read =
                                      [this] {
                                        if (ack_due_) send_ack();
                                      },
                                  .on_drained = {},
                                  .on_lost = [this](const Connection::Loss& loss) { events_.on_closed(*this, loss); }});
}

void PeerSession::tick() {
  const microseconds silent = context_.reactor.host_now() - last_heard_;
  if (!is_admitted() && silent > kAcceptorPatience * context_.timings.hello_timeout) return refuse("no hello in time");
  if (is_admitted() && silent > context_.timings.silence_max) {
    connection_->shut();
    events_.on_closed(*this, {"nothing heard in time"});
  }
}

void PeerSession::on_message(const wire::Message& message) {
  if (std::holds_alternative<wire::UnknownKind>(message)) return;
  if (!is_admitted()) return on_hello(message);
  last_heard_ = context_.reactor.host_now();
  if (const auto* entry = std::get_if<wire::Entry>(&message)) return on_entry(*entry);
  if (const auto* beat = std::get_if<wire::Heartbeat>(&message)) return on_heartbeat(*beat);
  if (const auto* end = std::get_if<wire::SnapshotEnd>(&message)) return on_snapshot_end(*end);
  if (const auto* brakes = std::get_if<wire::Brakes>(&message)) return on_brakes(*brakes);
  if (std::holds_alternative<wire::Goodbye>(message)) return on_goodbye();
  connection_->refuse("found " + std::string(wire::kind_name(message)) +
                      ", allowed: entry, snapshot end, heartbeat, brakes, goodbye");
}

void PeerSession::on_hello(const wire::Message& message) {
  const auto* hello = std::get_if<wire::Hello>(&message);
  if (hello == nullptr) {
    return connection_->refuse("found " + std::string(wire::kind_name(message)) + ", allowed: hello");
  }
  if (const Status admitted = events_.admit(*this, *hello); !admitted) return refuse(admitted.error());
  node_ = hello->node;
  id_ = node_id(node_);
  incarnation_ = hello->incarnation;
  last_heard_ = context_.reactor.host_now();
  (void)transit_.delay(hello->host, last_heard_);
  if (!connection_->send(hello_of(context_.identity, last_heard_))) refuse("too slow");
}

bool PeerSession::take_sequence(std::uint64_t sequence) {
  if (sequence != sequence_ + 1) {
    connection_->refuse("sequence: found " + std::to_string(sequence) + ", allowed: " + std::to_string(sequence_ + 1));
    return false;
  }
  sequence_ = sequence;
  ack_due_ = true;
  return true;
}

void PeerSession::on_entry(const wire::Entry& entry) {
  if (!take_sequence(entry.sequence)) return;
  Mitigation mitigation = entry.mitigation;
  mitigation.until = last_heard_ + entry.remaining - transit_.delay(entry.host, last_heard_);
  // Refused ones are counted by the set; they are acknowledged all the same, for sending them again would not help.
  (void)context_.set.merge(std::move(mitigation), {Origin::Kind::kPeer, id_, entry.in_snapshot}, last_heard_);
}

void PeerSession::on_snapshot_end(const wire::SnapshotEnd& end) {
  if (!take_sequence(end.sequence)) return;
  digest_equal_ = differing_buckets(context_.set.digest(), end.digest) == 0;
  if (end.buckets == kAllBuckets) events_.on_snapshot(node_);
}

void PeerSession::on_heartbeat(const wire::Heartbeat& beat) {
  (void)transit_.delay(beat.host, last_heard_);
  if (beat.digest) compare(*beat.digest);
  if (beat.figures) figures_ = beat.figures;
  count_lag_ = beat.count_lag;
  if (beat.certificate_until) certificate_until_ = beat.certificate_until;
  echo_ = beat.host;
  send_ack();
}

void PeerSession::on_brakes(const wire::Brakes& brakes) {
  if (context_.brakes != nullptr) context_.brakes->merge(brakes.brakes, id_);
}

// News under way makes any two digests differ for a moment. What differs twice in a row has been missed.
void PeerSession::compare(const Digest& theirs) {
  const std::uint64_t differs = differing_buckets(context_.set.digest(), theirs);
  const std::uint64_t missed = differs & std::exchange(differed_, differs);
  digest_equal_ = differs == 0;
  if (differs == 0) {
    resend_skip_ = 0;
    resend_skip_next_ = 1;
  }
  if (missed == 0) return;
  if (resend_skip_ > 0) {
    --resend_skip_;
    return;
  }
  resend_buckets_ = missed;
  differed_ = 0;
  resend_skip_ = resend_skip_next_ - 1;
  resend_skip_next_ = std::min(resend_skip_next_ * 2, kResendSkipMax);
}

void PeerSession::on_goodbye() {
  said_goodbye_ = true;
  connection_->shut();
  events_.on_closed(*this, {"it said goodbye"});
}

void PeerSession::send_ack() {
  ack_due_ = false;
  const wire::Ack ack{sequence_, std::exchange(echo_, HostInstant{}), context_.reactor.wall_now(),
                      context_.identity.rules_revision, std::exchange(resend_buckets_, 0)};
  if (connection_->send(ack)) return;
  connection_->shut();
  events_.on_closed(*this, {"it does not read acknowledgements"});
}

void PeerSession::refuse(const std::string& why) {
  connection_->send_last(wire::Refused{why});
  events_.on_closed(*this, {why});
}

}  // namespace popgate
