// SPDX-License-Identifier: Apache-2.0
//
// The mesh: every daemon of the PoP tells every other what it decided, and hears what they did.
//
// Each node dials every configured peer and *sends* over the connection that it dialled; the accepting side only
// acknowledges. So each direction of a pair has one connection, one sequence, one owner of its retries, and no rule is
// needed for who dials whom. After hellos both ways the dialler sends all of its entries, then news. Heartbeats carry
// the sequence number, both clocks and, every few seconds, a digest of the set; buckets that differ twice in a row are
// sent again. Over a transport that proves no names it listens and dials on loopback only.
//
// Passing news on lives here: daemon.cc hands every change of the set to broadcast(), which sends a local decision to
// all peers, a peer's to all but that peer and the decider, and the rest to nobody. What came in a snapshot is not
// passed on (its sender has sent it to the others too); where that was wrong, digests find it.
//
// Threads: the event loop's. The process must ignore SIGPIPE.
// Invariants: 1. One session at most is heard for each node name.
// Limits: kMembersMax members; kHalfOpenMax accepted connections without a hello, at which the oldest of the busiest
// address goes; output_bytes_max waiting for a peer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/peers/mesh_context.h"
#include "daemon/peers/mesh_metrics.h"
#include "daemon/peers/peer_link.h"
#include "daemon/peers/peer_session.h"
#include "daemon/peers/peer_status.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kHalfOpenMax = 32;
/// A daemon that was heard this recently is alive: another of its name is a clash, not its successor.
inline constexpr milliseconds kAliveWithin{600};                              // two heartbeats and some
inline constexpr std::size_t kOutputBytesMax = std::size_t{8} * 1024 * 1024;  // some 40,000 entries

struct MeshOptions {
  std::string pop;
  std::string node;
  std::uint64_t incarnation = 0;
  std::uint64_t secret_id = 0;  // secret_id() of hash_secret.h, of the first secret
  std::optional<wire::SecretName> second_secret{};
  std::uint64_t rules_revision = 0;
  Endpoint listen;
  std::vector<MemberConfig> peers;  // the other members
  std::uint64_t seed = 0;           // of jitter
  std::size_t output_bytes_max = kOutputBytesMax;
  std::uint32_t version_min = kMeshVersionMin;
  std::uint32_t version_max = kMeshVersionMax;
  MeshTimings timings;
  Brakes* brakes = nullptr;  // outlives the mesh
  /// What this node tells of itself in each heartbeat.
  std::function<wire::NodeFigures()> figures;
  /// A peer's whole set has arrived: what this node did not know of itself, it knows now (allow_originating).
  std::function<void(const std::string& node)> on_snapshot;
  /// What peers are told of hits that this node has not counted yet.
  std::function<std::optional<CountLag>()> count_lag{};
};

class Mesh {
 public:
  /// Listens and begins to dial. What is passed by reference must outlive the mesh.
  [[nodiscard]] static Result<std::unique_ptr<Mesh>> start(Reactor& reactor, Transport& transport, MeshOptions options,
                                                           Mitigations& set);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Every change of the set, with where it came from.
  void broadcast(const Mitigation& mitigation, const Origin& origin);
  /// Every change of the PoP's brakes, to all peers but the one that told.
  void broadcast(std::span<const Brake> brakes, NodeId from);
  void use_rules_revision(std::uint64_t revision);
  /// Greets every peer again when they differ from those it was greeted with: peers learn them, or part.
  void use_secrets(std::uint64_t first, const std::optional<wire::SecretName>& second);
  /// Says goodbye to all peers and closes every connection.
  void stop();

  [[nodiscard]] MeshStatus status() const;
  [[nodiscard]] std::uint16_t listen_port() const;
  void visit(const MetricVisitor& visitor) const;

 private:
  /// What is known of a peer's telling us, across its connections.
  struct Heard {
    std::optional<HostInstant> last;
    bool said_goodbye = false;
    std::optional<PopInstant> certificate_until;
    std::uint64_t rubbish_cuts = 0;
    HostInstant refused_until{};  // after rubbish
    LogLimiter log{};
    Backoff backoff;
    ConnectionCounts closed_counts;
  };

  Mesh(Reactor& reactor, Transport& transport, MeshOptions options, Mitigations& set);
  [[nodiscard]] Status listen();
  [[nodiscard]] Status add_peer(const MemberConfig& member);
  void on_accept(std::unique_ptr<Stream> stream, const SocketAddress& remote);
  void make_room_for_one();
  [[nodiscard]] Status admit(const PeerSession& session, const wire::Hello& hello);
  void on_closed(const PeerSession& session, const Connection::Loss& loss);
  void log_stranger(const std::string& remote, const std::string& why);
  void tick();
  [[nodiscard]] PeerSession* session_of(const std::string& node) const;

  MeshOptions options_;
  MeshContext context_;
  PeerSession::Events session_events_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::vector<std::unique_ptr<PeerSession>> sessions_;  // closed ones until the next tick
  std::map<std::string, Heard> heard_;
  Timer ticker_;
  MeshCounts counts_;
  LogLimiter stranger_log_;
};

}  // namespace popgate
