// SPDX-License-Identifier: Apache-2.0
//
// The kernel's side of one end of a TCP connection: what the kernel promises a socket's owner over a network that
// loses, repeats and delays.
//
// It does as Linux does where that shows: SYNs are repeated after 1, 3, 7 s; what is not acknowledged is repeated after
// 200 ms and more, doubling, so that a path that loses half of its packets all but stops; a window that the reader does
// not open holds the writer up; a close with unread input resets; what the kernel was given before the process was
// killed still travels; what reaches an end that is no more is answered by a reset. Segments are cut at random places.
// Left out: congestion control beyond a window that halves and grows, Nagle, delayed acknowledgements.
//
// Threads: one.
// Invariants: 1. Bytes are read in the order in which they were written, each once.
//             2. After an end was reset or gave up, nothing more is sent.
// Limits: kSendBufferBytes given and not acknowledged; kReceiveBufferBytes not read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/simulation/network.h"

namespace popgate::simulation {

class TcpEnd {
 public:
  static constexpr std::size_t kSendBufferBytes = 256 * 1024;
  static constexpr std::size_t kReceiveBufferBytes = 128 * 1024;
  static constexpr std::size_t kSegmentBytes = 16 * 1024;  // as segmentation offload sends
  static constexpr std::size_t kSegmentsInFlightFirst = 10;
  static constexpr std::size_t kSegmentsInFlightMax = 64;
  static constexpr microseconds kSynTimeout{1'000'000};
  static constexpr unsigned kSynTriesMax = 6;
  static constexpr microseconds kRetransmitMin{200'000};
  static constexpr microseconds kRetransmitMax{120'000'000};
  static constexpr microseconds kGivesUpAfter{924'000'000};  // tcp_retries2
  static constexpr microseconds kOrphanKept{60'000'000};     // tcp_fin_timeout
  static constexpr int kRepeatsForFastRetransmit = 3;

  /// One that dials; call send_syn() next.
  TcpEnd(Network& network, std::uint64_t number, HostNumber host, Port to, std::function<void()> on_change);
  /// One that was dialled by `syn`; `accepted` is called when the handshake is over.
  TcpEnd(Network& network, std::uint64_t number, const Packet& syn, std::function<void()> accepted);
  TcpEnd(const TcpEnd&) = delete;
  TcpEnd& operator=(const TcpEnd&) = delete;

  // The owner's side.
  /// Called at every change that the owner may want to look at; never from within a call of the owner.
  void on_change(std::function<void()> look) { on_change_ = std::move(look); }
  [[nodiscard]] bool is_established() const { return state_ == State::kEstablished; }
  /// As much as the buffer takes.
  [[nodiscard]] std::size_t write(std::string_view bytes);
  /// Takes up to `bytes_max` of what has come.
  [[nodiscard]] std::string read(std::size_t bytes_max);
  [[nodiscard]] bool has_input() const { return !input_.empty(); }
  [[nodiscard]] bool has_room() const { return output_.size() < kSendBufferBytes && !is_dead(); }
  /// All input was read and no more will come.
  [[nodiscard]] bool is_at_end() const { return fin_received_ && input_.empty(); }
  [[nodiscard]] bool is_dead() const { return state_ == State::kDead; }
  [[nodiscard]] const std::string& death() const { return death_; }
  /// The owner is gone. The end lives on until what it holds was delivered.
  void close();

  // The network's side.
  void send_syn();
  void receive(const Packet& packet);
  [[nodiscard]] HostNumber host() const { return host_; }
  [[nodiscard]] HostNumber remote_host() const { return remote_.host; }
  [[nodiscard]] std::uint64_t remote_end() const { return remote_end_; }

 private:
  enum class State : std::uint8_t { kDialling, kAnswering, kEstablished, kDead };

  [[nodiscard]] Packet packet(Packet::Kind kind) const;
  [[nodiscard]] std::uint64_t in_flight() const { return next_ - acknowledged_; }
  [[nodiscard]] std::uint64_t output_end() const { return acknowledged_ + output_.size(); }
  [[nodiscard]] std::uint64_t window_end() const { return received_ + kReceiveBufferBytes - input_.size(); }
  [[nodiscard]] bool fin_is_acknowledged() const { return fin_wanted_ && acknowledged_ > fin_sequence_; }
  void push();
  void send_segment(std::uint64_t sequence, std::size_t bytes);
  void send_ack();
  void start_timer();
  void time_out(std::uint64_t shot);
  void take_ack(const Packet& packet);
  void take_data(const Packet& packet);
  void establish(std::uint64_t remote_end);
  void die(const std::string& why, bool tell_remote);
  void forget_if_done();
  void forget_soon();
  void changed();

  Network& network_;
  std::uint64_t number_;
  HostNumber host_;
  Port remote_;
  std::uint64_t remote_end_ = 0;
  std::function<void()> on_change_;
  State state_;
  std::string death_;
  bool orphan_ = false;

  // Sending. A FIN takes one place in the sequence, behind all bytes.
  std::string output_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t remote_window_end_ = kReceiveBufferBytes;
  bool room_wanted_ = false;  // the last write was not taken whole
  bool fin_wanted_ = false;
  std::uint64_t fin_sequence_ = 0;
  std::size_t segments_max_ = kSegmentsInFlightFirst;
  int repeated_acks_ = 0;
  microseconds timeout_ = kRetransmitMin;
  microseconds timeout_first_ = kRetransmitMin;
  std::uint64_t timed_sequence_ = 0;  // what the round trip is measured by; 0: nothing
  ModelInstant timed_at_{};
  ModelInstant stuck_since_{};
  std::uint64_t timer_shot_ = 0;
  bool timer_runs_ = false;
  unsigned syn_tries_ = 0;

  // Receiving.
  std::string input_;
  std::uint64_t received_ = 0;
  std::map<std::uint64_t, std::string> ahead_;  // came before what precedes it
  bool fin_known_ = false;
  std::uint64_t fin_at_ = 0;
  bool fin_received_ = false;
};

}  // namespace popgate::simulation
