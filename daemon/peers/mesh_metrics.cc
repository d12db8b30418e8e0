// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/mesh_metrics.h"

#include <chrono>

namespace popgate {
namespace {

double seconds(microseconds t) { return std::chrono::duration<double>(t).count(); }
double one_if(bool state) { return state ? 1 : 0; }

struct PeerRow {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  bool rises;
  double (*value)(const PeerStatus&);
};

constexpr PeerRow kPeerRows[] = {
    {"popgate_peers_up_to_date", "", "1 when the peer has acknowledged everything", false,
     [](const PeerStatus& p) { return one_if(p.up_to_date); }},
    {"popgate_peers_heard", "", "1 when the peer's own connection to this node is up", false,
     [](const PeerStatus& p) { return one_if(p.heard); }},
    {"popgate_peers_lag", "entries", "Entries sent and not acknowledged", false,
     [](const PeerStatus& p) { return static_cast<double>(p.lag); }},
    {"popgate_peers_rtt", "seconds", "Round-trip time, the quickest of the last few", false,
     [](const PeerStatus& p) { return seconds(p.rtt.value_or(microseconds(0))); }},
    {"popgate_peers_skew", "seconds", "The peer's wall clock less this node's", false,
     [](const PeerStatus& p) { return seconds(p.skew.value_or(microseconds(0))); }},
    {"popgate_peers_ack_p50", "seconds", "From a decision here until the peer had published it: half of all", false,
     [](const PeerStatus& p) { return seconds(p.ack_p50); }},
    {"popgate_peers_ack_p99", "seconds", "From a decision here until the peer had published it: 99 of 100", false,
     [](const PeerStatus& p) { return seconds(p.ack_p99); }},
    {"popgate_peers_ack_max", "seconds", "From a decision here until the peer had published it: the longest", false,
     [](const PeerStatus& p) { return seconds(p.ack_max); }},
    {"popgate_peers_acks_timed", "decisions", "Decisions of this node whose acknowledgement was timed", true,
     [](const PeerStatus& p) { return static_cast<double>(p.acks_timed); }},
    {"popgate_peers_digest_differs", "", "1 when its set and this node's differed at the last comparison", false,
     [](const PeerStatus& p) { return one_if(!p.digest_equal.value_or(true)); }},
    {"popgate_peers_rules_differ", "", "1 when its rules are not this node's", false,
     [](const PeerStatus& p) { return one_if(!p.rules_equal.value_or(true)); }},
    {"popgate_peers_brakes_differ", "", "1 when it was told something else about blocking than this node", false,
     [](const PeerStatus& p) { return one_if(!p.brakes_equal.value_or(true)); }},
    {"popgate_peers_not_enforced", "entries", "Mitigations for which the peer's table has no room, as it last said",
     false, [](const PeerStatus& p) { return p.figures ? static_cast<double>(p.figures->not_enforced) : 0; }},
    {"popgate_peers_connects", "connections", "Times that telling the peer began", true,
     [](const PeerStatus& p) { return static_cast<double>(p.connects); }},
    {"popgate_peers_losses", "connections", "Connections to the peer that ended or failed", true,
     [](const PeerStatus& p) { return static_cast<double>(p.losses); }},
    {"popgate_peers_slow_cuts", "connections", "Connections cut because the peer did not read fast enough", true,
     [](const PeerStatus& p) { return static_cast<double>(p.slow_cuts); }},
    {"popgate_peers_rubbish_cuts", "connections", "Connections cut because the peer sent what is no message", true,
     [](const PeerStatus& p) { return static_cast<double>(p.rubbish_cuts); }},
    {"popgate_peers_resends", "snapshots", "Parts of the set sent again because digests differed", true,
     [](const PeerStatus& p) { return static_cast<double>(p.resends); }},
    {"popgate_peers_received", "bytes", "Bytes received from the peer", true,
     [](const PeerStatus& p) { return static_cast<double>(p.bytes_in); }},
    {"popgate_peers_sent", "bytes", "Bytes sent to the peer", true,
     [](const PeerStatus& p) { return static_cast<double>(p.bytes_out); }},
    {"popgate_peers_frames_received", "frames", "Frames received from the peer", true,
     [](const PeerStatus& p) { return static_cast<double>(p.frames_in); }},
    {"popgate_peers_frames_sent", "frames", "Frames sent to the peer", true,
     [](const PeerStatus& p) { return static_cast<double>(p.frames_out); }},
};

// Only of peers whose certificate's end is known: 0 would be an alarm.
void visit_certificate(const PeerStatus& peer, const MetricVisitor& visitor) {
  if (!peer.certificate_left) return;
  visitor({"popgate_peers_peer_certificate_left", "seconds",
           "Until the peer's certificate or its CA's expires, as the peer last told; below 0 it has",
           seconds(*peer.certificate_left), false, "peer", peer.name});
}

struct MeshRow {
  std::uint64_t MeshCounts::*figure;
  std::string_view name;
  std::string_view meaning;
};

constexpr MeshRow kMeshRows[] = {
    {&MeshCounts::accepted, "popgate_peers_accepted", "Connections accepted from anybody"},
    {&MeshCounts::half_open_refused, "popgate_peers_half_open_refused",
     "Connections without a hello that made room because too many waited"},
    {&MeshCounts::hellos_refused, "popgate_peers_hellos_refused",
     "Hellos refused: another PoP, an unknown name, another secret, a name clash"},
    {&MeshCounts::rubbish_cuts, "popgate_peers_accepted_rubbish_cuts",
     "Accepted connections cut because they brought what is no message"},
    {&MeshCounts::accept_failures, "popgate_peers_accept_failures", "Connections that the kernel could not hand over"},
};

}  // namespace

std::string_view link_state_name(LinkState state) {
  switch (state) {
    case LinkState::kWaiting:
      return "waiting";
    case LinkState::kConnecting:
      return "connecting";
    case LinkState::kGreeting:
      return "greeting";
    case LinkState::kSnapshot:
      return "snapshot";
    case LinkState::kLive:
      return "live";
  }
  return "";
}

void visit_mesh(const MeshStatus& status, const MeshCounts& counts, const MetricVisitor& visitor) {
  visitor({"popgate_peers_coverage", "", "Share of the configured peers that have acknowledged everything",
           status.coverage, false, "", ""});
  for (const MeshRow& row : kMeshRows) {
    visitor({row.name, "connections", row.meaning, static_cast<double>(counts.*row.figure), true, "", ""});
  }
  for (const PeerRow& row : kPeerRows) {
    for (const PeerStatus& peer : status.peers) {
      visitor({row.name, row.unit, row.meaning, row.value(peer), row.rises, "peer", peer.name});
    }
  }
  for (const PeerStatus& peer : status.peers) visit_certificate(peer, visitor);
}

}  // namespace popgate
