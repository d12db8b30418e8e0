// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/peer_link.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/printable_text.h"

namespace popgate {

PeerLink::PeerLink(MeshContext& context, std::string name, SocketAddress address)
    : context_(context),
      name_(std::move(name)),
      id_(node_id(name_)),
      address_(address),
      redial_(context.reactor, [this] { dial(); }),
      attempt_(context.reactor, [this] { on_attempt_late(); }),
      reconnect_(context.timings.backoff_first, context.timings.reconnect_longest),
      backoff_(context.timings.backoff_first, context.timings.backoff_longest) {
  enter(LinkState::kWaiting);
}

void PeerLink::enter(LinkState state) {
  state_ = state;
  since_ = context_.reactor.host_now();
}

void PeerLink::dial() {
  enter(LinkState::kConnecting);
  refused_ = false;
  auto stream = context_.transport.dial(address_, name_);
  if (stream == nullptr) return on_lost({"the kernel gives no socket"});
  connection_ = Connection::over(std::move(stream), context_.output_bytes_max,
                                 {.on_connected =
                                      [this] {
                                        enter(LinkState::kGreeting);
                                        send(hello_of(context_.identity, context_.reactor.host_now()));
                                      },
                                  .on_message = [this](const wire::Message& message) { on_message(message); },
                                  .on_batch_read = {},
                                  .on_drained = [this] { continue_snapshot(); },
                                  .on_lost = [this](const Connection::Loss& loss) { on_lost(loss); }});
  attempt_extended_ = false;
  attempt_.start_once(context_.timings.hello_timeout);
}

// Given more time once, when the kernel has learned that the way is long.
void PeerLink::on_attempt_late() {
  if (const auto round_trip = connection_->round_trip(); round_trip && !attempt_extended_) {
    attempt_extended_ = true;
    const microseconds longest = kHelloRoundTrips * context_.timings.hello_timeout;
    return attempt_.start_once(std::min(kHelloRoundTrips * *round_trip, longest));
  }
  give_up(state_ == LinkState::kConnecting ? "no connection in time" : "hello not answered in time");
}

void PeerLink::peer_is_there() {
  if (state_ == LinkState::kWaiting && !refused_) redial_.start_once(microseconds(0));
}

void PeerLink::tick() {
  const HostInstant now = context_.reactor.host_now();
  if (!is_greeted()) return;
  if (now - last_ack_ > context_.timings.silence_max) return give_up("nothing acknowledged in time");
  send_heartbeat(now);
}

void PeerLink::news(const Mitigation& mitigation, bool decided_here) {
  if (!is_greeted()) return;
  if (decided_here) ack_latency_.sent(sequence_ + 1, context_.reactor.host_now());
  send_entry(mitigation, false);
}

void PeerLink::tell(std::span<const Brake> brakes) {
  while (is_greeted() && !brakes.empty()) {
    const auto part = brakes.first(std::min(brakes.size(), wire::kBrakesInMessageMax));
    brakes = brakes.subspan(part.size());
    send(wire::Brakes{{part.begin(), part.end()}});
  }
}

void PeerLink::tell_all_brakes() {
  if (context_.brakes == nullptr) return;
  tell(context_.brakes->told());
}

void PeerLink::say_goodbye() {
  attempt_.stop();
  if (connection_ != nullptr && is_greeted()) connection_->send_last(wire::Goodbye{});
  redial_.stop();
}

void PeerLink::greet_again() {
  if (connection_ != nullptr && state_ != LinkState::kConnecting)
    give_up("greeting again: this node's secrets changed");
}

void PeerLink::on_message(const wire::Message& message) {
  if (std::holds_alternative<wire::UnknownKind>(message)) return;
  if (std::holds_alternative<wire::Goodbye>(message)) return give_up("it said goodbye");
  if (!is_greeted()) return on_greeting(message);
  if (const auto* ack = std::get_if<wire::Ack>(&message)) return on_ack(*ack);
  connection_->refuse("found " + std::string(wire::kind_name(message)) + ", allowed: ack, goodbye");
}

void PeerLink::on_greeting(const wire::Message& message) {
  if (const auto* refused = std::get_if<wire::Refused>(&message)) {
    return give_up_refused("it refused: " + printable_ascii(refused->reason));
  }
  const auto* hello = std::get_if<wire::Hello>(&message);
  if (hello == nullptr) {
    return connection_->refuse("found " + std::string(wire::kind_name(message)) + ", allowed: hello, refused, goodbye");
  }
  const auto version = check_hello(context_.identity, *hello, name_);
  if (!version) return give_up_refused(version.error());
  begin(*hello);
}

void PeerLink::begin(const wire::Hello& hello) {
  const HostInstant now = context_.reactor.host_now();
  attempt_.stop();
  sequence_ = 0;
  acked_ = 0;
  last_ack_ = now;
  next_digest_ = now;
  round_trip_ = {};
  their_rules_ = hello.rules_revision;
  context_.secrets_of_peers[name_] = secrets_of(hello);
  members_equal_ = hello.members == context_.identity.members;
  ++connects_;
  enter(LinkState::kSnapshot);
  if (log_.allow(now)) {
    spdlog::info("peer {} at {}: connected, sending what is in force{}", name_, address_.text(), log_.withheld_text());
    if (!members_equal_) spdlog::warn("peer {}: its list of members is not ours; check both configurations", name_);
  }
  tell_all_brakes();  // before the snapshot: what must not block is known before what would
  if (is_greeted()) start_snapshot(kAllBuckets);
}

void PeerLink::start_snapshot(std::uint64_t buckets) {
  snapshot_ = Snapshot{buckets, context_.set.ids(buckets), 0};
  continue_snapshot();
}

void PeerLink::continue_snapshot() {
  const std::size_t ahead = std::min(kSnapshotOutputBytes, context_.output_bytes_max / 2);
  // Sending may end the connection, and the snapshot with it.
  while (snapshot_ && connection_->output_bytes() < ahead) {
    if (snapshot_->next == snapshot_->ids.size()) return end_snapshot();
    const Mitigation* entry = context_.set.find_entry(snapshot_->ids[snapshot_->next++]);
    if (entry != nullptr) send_entry(*entry, true);
  }
}

void PeerLink::end_snapshot() {
  const std::uint64_t buckets = snapshot_->buckets;
  snapshot_.reset();
  if (state_ == LinkState::kSnapshot) enter(LinkState::kLive);
  send(wire::SnapshotEnd{++sequence_, context_.reactor.host_now(), buckets, context_.set.digest()});
}

void PeerLink::send_entry(const Mitigation& mitigation, bool in_snapshot) {
  const HostInstant now = context_.reactor.host_now();
  send(wire::Entry{++sequence_, now, in_snapshot, mitigation.until - now, mitigation});
}

void PeerLink::send_heartbeat(HostInstant now) {
  wire::Heartbeat beat{
      now, context_.reactor.wall_now(), sequence_, context_.identity.rules_revision, std::nullopt, std::nullopt};
  if (context_.figures) beat.figures = context_.figures();
  beat.certificate_until = context_.transport.own_proof_ends();
  if (state_ == LinkState::kLive && !snapshot_ && now >= next_digest_) {
    beat.digest = context_.set.digest();
    const auto apart = microseconds(context_.timings.digest).count();
    std::uniform_int_distribution<std::int64_t> jittered(apart * 3 / 4, apart * 5 / 4);
    next_digest_ = now + microseconds(jittered(context_.random));
  }
  if (context_.count_lag) beat.count_lag = context_.count_lag();
  send(beat);
}

void PeerLink::send(const wire::Message& message) {
  if (connection_ == nullptr || connection_->send(message)) return;
  ++slow_cuts_;
  give_up("more than " + std::to_string(context_.output_bytes_max) + " bytes waited to be sent: too slow");
}

void PeerLink::on_ack(const wire::Ack& ack) {
  const HostInstant now = context_.reactor.host_now();
  if (ack.sequence > sequence_ || ack.sequence < acked_) {
    return connection_->refuse("ack.sequence: found " + std::to_string(ack.sequence) +
                               ", allowed: " + std::to_string(acked_) + " to " + std::to_string(sequence_));
  }
  acked_ = ack.sequence;
  // After a pause of this machine its clocks may not be to each other as they were.
  if (now - last_ack_ > context_.timings.silence_max) round_trip_ = {};
  last_ack_ = now;
  their_rules_ = ack.rules_revision;
  ack_latency_.acknowledged(acked_, now);
  if (ack.echoed > HostInstant{} && ack.echoed <= now) {
    const microseconds rtt = now - ack.echoed;
    round_trip_.add({rtt, ack.wall.time_since_epoch() + rtt / 2 - now.time_since_epoch()});
  }
  if (ack.resend_buckets != 0 && !snapshot_) {
    ++resends_;
    start_snapshot(ack.resend_buckets);
  }
}

void PeerLink::give_up(const std::string& why) {
  connection_->shut();
  on_lost({why});
}

void PeerLink::give_up_refused(const std::string& why) {
  refused_ = true;
  give_up(why);
}

void PeerLink::on_lost(const Connection::Loss& loss) {
  const HostInstant now = context_.reactor.host_now();
  attempt_.stop();
  if (state_ == LinkState::kLive && now - since_ >= context_.timings.stable_after) {
    reconnect_.reset();
    backoff_.reset();
  }
  if (connection_ != nullptr) {
    const ConnectionCounts& counts = connection_->counts();
    closed_counts_.bytes_in += counts.bytes_in;
    closed_counts_.bytes_out += counts.bytes_out;
    closed_counts_.frames_in += counts.frames_in;
    closed_counts_.frames_out += counts.frames_out;
  }
  ++losses_;
  if (loss.refused) refused_ = true;
  if (loss.rubbish) {
    refused_ = true;
    ++rubbish_cuts_;
  }
  // A peer that stays away says the same at every attempt: once is enough.
  if ((is_greeted() || loss.why != last_error_) && log_.allow(now)) {
    spdlog::warn("peer {} at {}: {}{}", name_, address_.text(), loss.why, log_.withheld_text());
  }
  last_error_ = loss.why;
  connection_.reset();
  snapshot_.reset();
  ack_latency_.forget_pending();
  enter(LinkState::kWaiting);
  redial_.start_once((refused_ ? backoff_ : reconnect_).next(context_.random));
}

void PeerLink::describe(PeerStatus& status) const {
  status.name = name_;
  status.address = address_.text();
  status.state = state_;
  status.since = since_;
  status.lag = is_greeted() ? sequence_ - acked_ : 0;
  status.up_to_date = state_ == LinkState::kLive && acked_ == sequence_;
  if (is_greeted()) {
    const HostInstant now = context_.reactor.host_now();
    const auto sample = round_trip_.quickest();
    if (sample && now - last_ack_ <= context_.timings.silence_max) {
      status.rtt = sample->rtt;
      status.skew = sample->skew(now, context_.reactor.wall_now());
    }
    status.rules_equal = their_rules_ == context_.identity.rules_revision;
    status.members_equal = members_equal_;
  }
  status.acks_timed = ack_latency_.count();
  status.ack_p50 = ack_latency_.quantile(0.5);
  status.ack_p99 = ack_latency_.quantile(0.99);
  status.ack_max = ack_latency_.max();
  status.last_error = last_error_;
  status.connects = connects_;
  status.losses = losses_;
  status.slow_cuts = slow_cuts_;
  status.rubbish_cuts += rubbish_cuts_;
  status.resends = resends_;
  const ConnectionCounts open = connection_ == nullptr ? ConnectionCounts{} : connection_->counts();
  status.bytes_in += closed_counts_.bytes_in + open.bytes_in;
  status.bytes_out += closed_counts_.bytes_out + open.bytes_out;
  status.frames_in += closed_counts_.frames_in + open.frames_in;
  status.frames_out += closed_counts_.frames_out + open.frames_out;
}

}  // namespace popgate
