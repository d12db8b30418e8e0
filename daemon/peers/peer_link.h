// SPDX-License-Identifier: Apache-2.0
//
// Tells one peer everything: dials it, greets, sends a snapshot, then news and heartbeats, and starts over whenever
// that ends.
//
// News is sent from the moment of the greeting, beside the snapshot, so that nothing falls between them. A peer that
// does not read fast enough is cut when the output buffer passes its bound, and gets a snapshot when it is back: no
// queue grows with a peer's absence.
//
// An attempt that has not led to a greeting in time is given up and a new one begun, without waiting for the kernel,
// whose patience grows with every packet that is lost. Where the way to the peer is long, it gets more time.
//
// Threads: the event loop's.
// Invariants: 1. Sequence numbers of a connection rise by one from 1 over entries and snapshot ends.
// Limits: MeshContext::output_bytes_max waits to be sent; a snapshot is written kSnapshotOutputBytes ahead, and at most
//         half of that, so that it never cuts its own connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/backoff.h"
#include "daemon/log_limiter.h"
#include "daemon/peers/ack_latency.h"
#include "daemon/peers/connection.h"
#include "daemon/peers/mesh_context.h"
#include "daemon/peers/peer_status.h"
#include "daemon/peers/round_trip.h"
#include "daemon/reactor.h"

namespace popgate {

inline constexpr std::size_t kSnapshotOutputBytes = std::size_t{256} * 1024;

class PeerLink {
 public:
  PeerLink(MeshContext& context, std::string name, SocketAddress address);
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  void dial();
  /// Every heartbeat.
  void tick();
  void news(const Mitigation& mitigation, bool decided_here);
  /// Nothing happens unless the peer is greeted: it gets all of them then.
  void tell(std::span<const Brake> brakes);
  void say_goodbye();
  /// It has just been heard: if it seemed to be away, it is dialled now.
  void peer_is_there();
  /// With what this node now is; a connection that was greeted before ends for it.
  void greet_again();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] NodeId id() const { return id_; }
  void describe(PeerStatus& status) const;

 private:
  struct Snapshot {
    std::uint64_t buckets;
    std::vector<EntryId> ids;
    std::size_t next;
  };

  void enter(LinkState state);
  [[nodiscard]] bool is_greeted() const { return state_ == LinkState::kSnapshot || state_ == LinkState::kLive; }
  void on_message(const wire::Message& message);
  void on_greeting(const wire::Message& message);
  void on_ack(const wire::Ack& ack);
  void begin(const wire::Hello& hello);
  void tell_all_brakes();
  void start_snapshot(std::uint64_t buckets);
  void continue_snapshot();
  void end_snapshot();
  void send_entry(const Mitigation& mitigation, bool in_snapshot);
  void send_heartbeat(HostInstant now);
  void send(const wire::Message& message);
  void on_attempt_late();
  void on_lost(const Connection::Loss& loss);
  void give_up(const std::string& why);
  void give_up_refused(const std::string& why);

  MeshContext& context_;
  std::string name_;
  NodeId id_;
  SocketAddress address_;
  Timer redial_;
  Timer attempt_;  // runs from dialling until the peer has answered the hello
  bool attempt_extended_ = false;
  Backoff reconnect_;     // of a peer that is not there
  Backoff backoff_;       // of one that refuses, or answers what it must not
  bool refused_ = false;  // the last connection ended so
  std::shared_ptr<Connection> connection_;

  LinkState state_ = LinkState::kWaiting;
  HostInstant since_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t acked_ = 0;
  HostInstant last_ack_{};
  HostInstant next_digest_{};
  std::optional<Snapshot> snapshot_;
  AckLatency ack_latency_;
  RoundTrip round_trip_;
  std::uint64_t their_rules_ = 0;
  bool members_equal_ = true;

  std::string last_error_;
  LogLimiter log_;  // what answers at the peer's address may come and go as it likes
  std::uint64_t connects_ = 0;
  std::uint64_t losses_ = 0;
  std::uint64_t slow_cuts_ = 0;
  std::uint64_t rubbish_cuts_ = 0;
  std::uint64_t resends_ = 0;
  ConnectionCounts closed_counts_;  // of connections that are gone
};

}  // namespace popgate
