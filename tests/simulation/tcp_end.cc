// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/tcp_end.h"

#include <algorithm>
#include <utility>

namespace popgate::simulation {

TcpEnd::TcpEnd(Network& network, std::uint64_t number, HostNumber host, Port to, std::function<void()> on_change)
    : network_(network),
      number_(number),
      host_(host),
      remote_(to),
      on_change_(std::move(on_change)),
      state_(State::kDialling) {}

TcpEnd::TcpEnd(Network& network, std::uint64_t number, const Packet& syn, std::function<void()> accepted)
    : network_(network),
      number_(number),
      host_(syn.to),
      remote_{syn.from, 0},
      remote_end_(syn.from_end),
      on_change_(std::move(accepted)),
      state_(State::kAnswering) {}

Packet TcpEnd::packet(Packet::Kind kind) const {
  Packet packet;
  packet.kind = kind;
  packet.from = host_;
  packet.to = remote_.host;
  packet.from_end = number_;
  packet.to_end = remote_end_;
  packet.to_port = remote_.port;
  packet.acknowledged = fin_received_ ? received_ + 1 : received_;
  packet.window_end = window_end();
  return packet;
}

void TcpEnd::changed() {
  if (on_change_) on_change_();
}

// ---- The handshake ----

void TcpEnd::send_syn() {
  if (++syn_tries_ > kSynTriesMax) return die("Connection timed out", false);
  network_.send(packet(state_ == State::kDialling ? Packet::Kind::kSyn : Packet::Kind::kSynAck));
  timeout_ = kSynTimeout * (std::int64_t{1} << (syn_tries_ - 1));
  start_timer();
}

void TcpEnd::establish(std::uint64_t remote_end) {
  remote_end_ = remote_end;
  state_ = State::kEstablished;
  timer_runs_ = false;
  timeout_ = timeout_first_;
  stuck_since_ = network_.world().now();
}

void TcpEnd::receive(const Packet& got) {
  if (state_ == State::kDead) return;
  switch (got.kind) {
    case Packet::Kind::kReset:
      return die(state_ == State::kDialling ? "Connection refused" : "Connection reset by peer", false);
    case Packet::Kind::kSyn:  // repeated: the answer was lost
      return network_.send(packet(state_ == State::kAnswering ? Packet::Kind::kSynAck : Packet::Kind::kAck));
    case Packet::Kind::kSynAck:
      if (state_ == State::kDialling) {
        establish(got.from_end);
        send_ack();
        return changed();
      }
      return send_ack();
    default:
      break;
  }
  if (state_ == State::kDialling) return;
  if (state_ == State::kAnswering) {
    establish(got.from_end);
    std::exchange(on_change_, {})();  // accepted; whoever takes it over looks for itself what has come by then
  }
  if (orphan_ && !got.bytes.empty()) return die("closed", true);
  take_ack(got);
  if (state_ == State::kDead) return;
  if (got.kind == Packet::Kind::kProbe) return send_ack();
  if (got.kind == Packet::Kind::kData) take_data(got);
  forget_if_done();
}

// ---- Sending ----

std::size_t TcpEnd::write(std::string_view bytes) {
  if (state_ != State::kEstablished || fin_wanted_) return 0;
  const std::size_t taken = std::min(bytes.size(), kSendBufferBytes - std::min(kSendBufferBytes, output_.size()));
  if (output_.empty() && in_flight() == 0) stuck_since_ = network_.world().now();
  output_.append(bytes.substr(0, taken));
  room_wanted_ = taken < bytes.size();
  push();
  return taken;
}

void TcpEnd::push() {
  Random& random = network_.random();
  while (next_ < output_end() && next_ < remote_window_end_ && in_flight() < segments_max_ * kSegmentBytes) {
    std::size_t bytes = static_cast<std::size_t>(std::min(output_end(), remote_window_end_) - next_);
    bytes = std::min(bytes, kSegmentBytes);
    if (bytes > 1 && chance(random, 0.1)) bytes = static_cast<std::size_t>(draw(random, 1, bytes - 1));
    send_segment(next_, bytes);
    if (timed_sequence_ == 0) {
      timed_sequence_ = next_ + bytes;
      timed_at_ = network_.world().now();
    }
    next_ += bytes;
  }
  if (fin_wanted_ && next_ == fin_sequence_) {
    send_segment(next_, 0);
    ++next_;
  }
  const bool waits = in_flight() > 0 || next_ < output_end();
  if (waits && !timer_runs_) start_timer();
}

void TcpEnd::send_segment(std::uint64_t sequence, std::size_t bytes) {
  Packet segment = packet(Packet::Kind::kData);
  segment.sequence = sequence;
  segment.bytes = output_.substr(static_cast<std::size_t>(sequence - acknowledged_), bytes);
  segment.fin = fin_wanted_ && sequence + bytes == fin_sequence_;
  network_.send(std::move(segment));
}

void TcpEnd::send_ack() { network_.send(packet(Packet::Kind::kAck)); }

void TcpEnd::start_timer() {
  timer_runs_ = true;
  const std::uint64_t shot = ++timer_shot_;
  network_.world().after(timeout_, [&network = network_, number = number_, shot] {
    if (TcpEnd* const end = network.find(number)) end->time_out(shot);
  });
}

void TcpEnd::time_out(std::uint64_t shot) {
  if (shot != timer_shot_ || !timer_runs_ || state_ == State::kDead) return;
  timer_runs_ = false;
  if (state_ != State::kEstablished) return send_syn();
  if (in_flight() == 0 && next_ >= output_end() && !fin_wanted_) return;
  const microseconds stuck = network_.world().now() - stuck_since_;
  if (stuck > (orphan_ ? kOrphanKept : kGivesUpAfter)) return die("Connection timed out", false);
  timeout_ = std::min(timeout_ * 2, kRetransmitMax);
  timed_sequence_ = 0;
  if (in_flight() == 0) {  // the window is closed: is it still?
    network_.send(packet(Packet::Kind::kProbe));
  } else {
    segments_max_ = 1;
    repeated_acks_ = 0;
    next_ = acknowledged_;
    push();
  }
  if (!timer_runs_) start_timer();
}

void TcpEnd::take_ack(const Packet& got) {
  const bool window_grew = got.window_end > remote_window_end_;
  remote_window_end_ = std::max(remote_window_end_, got.window_end);
  if (got.acknowledged > acknowledged_) {
    const ModelInstant now = network_.world().now();
    if (timed_sequence_ != 0 && got.acknowledged >= timed_sequence_) {
      timeout_first_ = std::clamp<microseconds>(3 * (now - timed_at_), kRetransmitMin, kRetransmitMax);
      timed_sequence_ = 0;
    }
    output_.erase(0, std::min<std::size_t>(output_.size(), static_cast<std::size_t>(got.acknowledged - acknowledged_)));
    acknowledged_ = got.acknowledged;
    next_ = std::max(next_, acknowledged_);
    stuck_since_ = now;
    timeout_ = timeout_first_;
    repeated_acks_ = 0;
    segments_max_ = std::min(segments_max_ + 1, kSegmentsInFlightMax);
    timer_runs_ = false;
    push();
    if (room_wanted_ && !orphan_) changed();
    return;
  }
  if (window_grew) return push();
  if (got.kind != Packet::Kind::kAck || in_flight() == 0 || ++repeated_acks_ != kRepeatsForFastRetransmit) return;
  segments_max_ = std::max<std::size_t>(segments_max_ / 2, 1);
  timed_sequence_ = 0;
  send_segment(acknowledged_, std::min({output_.size(), kSegmentBytes, static_cast<std::size_t>(in_flight())}));
}

// ---- Receiving ----

void TcpEnd::take_data(const Packet& got) {
  if (got.fin) {
    fin_known_ = true;
    fin_at_ = got.sequence + got.bytes.size();
  }
  if (got.sequence + got.bytes.size() > received_ && got.sequence < window_end()) {
    std::string& held = ahead_[got.sequence];
    if (got.bytes.size() > held.size()) held = got.bytes;
  }
  const std::uint64_t before = received_;
  while (!ahead_.empty() && ahead_.begin()->first <= received_) {
    const auto first = ahead_.begin();
    const std::uint64_t known = received_ - first->first;
    if (first->second.size() > known) {
      input_.append(first->second, static_cast<std::size_t>(known));
      received_ += first->second.size() - known;
    }
    ahead_.erase(first);
  }
  const bool ended = fin_known_ && !fin_received_ && received_ == fin_at_;
  if (ended) fin_received_ = true;
  send_ack();
  if ((ended || received_ > before) && !orphan_) changed();
}

std::string TcpEnd::read(std::size_t bytes_max) {
  const bool was_closed = input_.size() + kSegmentBytes > kReceiveBufferBytes;
  std::string taken = input_.substr(0, bytes_max);
  input_.erase(0, taken.size());
  if (was_closed && !taken.empty() && state_ == State::kEstablished) send_ack();
  return taken;
}

// ---- The end ----

void TcpEnd::close() {
  on_change_ = {};
  orphan_ = true;
  if (state_ == State::kDead) return forget_soon();
  if (state_ != State::kEstablished) return die("closed", state_ == State::kAnswering);
  if (!input_.empty()) return die("closed with unread input", true);
  fin_wanted_ = true;
  fin_sequence_ = output_end();
  stuck_since_ = network_.world().now();
  push();
}

void TcpEnd::die(const std::string& why, bool tell_remote) {
  if (tell_remote) network_.send(packet(Packet::Kind::kReset));
  if (state_ == State::kAnswering) on_change_ = {};  // nobody was told of it, so nobody is
  state_ = State::kDead;
  death_ = why;
  output_.clear();
  ahead_.clear();
  if (orphan_ || !on_change_) return forget_soon();
  changed();
}

void TcpEnd::forget_if_done() {
  if (orphan_ && fin_is_acknowledged()) forget_soon();
}

// Not now: whoever called is still looking at this end.
void TcpEnd::forget_soon() {
  network_.world().after(microseconds(0), [&network = network_, number = number_] { network.forget(number); });
}

}  // namespace popgate::simulation
