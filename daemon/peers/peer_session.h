// SPDX-License-Identifier: Apache-2.0
//
// Hears one peer: the accepting side of a connection. Greets or refuses, merges what comes, and acknowledges it.
//
// An acknowledgement means *merged and published*: Mitigations::merge calls on_change before it returns, and the
// acknowledgement is written after it. One is sent for each read, however many entries it brought, and for each
// heartbeat.
//
// Threads: the event loop's.
// Invariants: 1. Nothing is merged before the peer was admitted.
//             2. An entry is merged once for each time it was sent, in the order of sending.
// Limits: kAcceptorPatience times MeshTimings::hello_timeout until the hello; kResendSkipMax digests between two
// requests to send again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/peers/connection.h"
#include "daemon/peers/mesh_context.h"
#include "daemon/peers/transit.h"

namespace popgate {

/// When sending again does not make the digests equal (a set that is full refuses entries), asking again waits longer.
inline constexpr unsigned kResendSkipMax = 64;

class PeerSession {
 public:
  struct Events {
    /// May this peer be heard? An error is what it is told.
    std::function<Status(PeerSession&, const wire::Hello&)> admit;
    /// A snapshot of everything is complete.
    std::function<void(const std::string& node)> on_snapshot;
    std::function<void(PeerSession&, const Connection::Loss&)> on_closed;
  };

  PeerSession(MeshContext& context, std::string remote, std::unique_ptr<Stream> stream, const Events& events);
  PeerSession(const PeerSession&) = delete;
  PeerSession& operator=(const PeerSession&) = delete;

  void tick();
  void say_goodbye() { connection_->send_last(wire::Goodbye{}); }
  /// Closes without telling anybody.
  void shut() { connection_->shut(); }

  [[nodiscard]] bool is_open() const { return connection_ != nullptr && connection_->is_open(); }
  [[nodiscard]] bool is_admitted() const { return !node_.empty(); }
  [[nodiscard]] const std::string& node() const { return node_; }  // empty before the hello
  [[nodiscard]] const std::string& remote() const { return remote_; }
  /// By the transport; empty where that proves none.
  [[nodiscard]] std::string proven_name() const { return connection_->proven_name(); }
  [[nodiscard]] std::uint64_t incarnation() const { return incarnation_; }
  [[nodiscard]] HostInstant last_heard() const { return last_heard_; }
  [[nodiscard]] std::optional<bool> digest_equal() const { return digest_equal_; }
  [[nodiscard]] bool said_goodbye() const { return said_goodbye_; }
  [[nodiscard]] const std::optional<wire::NodeFigures>& figures() const { return figures_; }
  [[nodiscard]] const std::optional<CountLag>& count_lag() const { return count_lag_; }
  /// As it told last; empty when it never did.
  [[nodiscard]] const std::optional<PopInstant>& certificate_until() const { return certificate_until_; }
  [[nodiscard]] const ConnectionCounts& counts() const { return connection_->counts(); }

 private:
  void on_message(const wire::Message& message);
  void on_hello(const wire::Message& message);
  void on_entry(const wire::Entry& entry);
  void on_snapshot_end(const wire::SnapshotEnd& end);
  void on_heartbeat(const wire::Heartbeat& beat);
  void on_brakes(const wire::Brakes& brakes);
  void on_goodbye();
  [[nodiscard]] bool take_sequence(std::uint64_t sequence);
  void compare(const Digest& theirs);
  void send_ack();
  void refuse(const std::string& why);

  MeshContext& context_;
  const Events& events_;
  std::string remote_;
  std::shared_ptr<Connection> connection_;
  std::string node_;
  NodeId id_ = 0;
  std::uint64_t incarnation_ = 0;
  HostInstant last_heard_;
  Transit transit_;

  std::uint64_t sequence_ = 0;
  bool ack_due_ = false;
  HostInstant echo_{};
  std::uint64_t resend_buckets_ = 0;
  std::uint64_t differed_ = 0;  // buckets, when last compared
  unsigned resend_skip_ = 0;    // digests to let pass before asking again
  unsigned resend_skip_next_ = 1;
  std::optional<bool> digest_equal_;
  std::optional<wire::NodeFigures> figures_;  // of its last heartbeat
  std::optional<PopInstant> certificate_until_;
  bool said_goodbye_ = false;
  std::optional<CountLag> count_lag_;
};

}  // namespace popgate
