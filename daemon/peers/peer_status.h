// SPDX-License-Identifier: Apache-2.0
//
// What `popgatectl peers` shows: each configured peer as this node sees it, in both directions.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/count/count_lag.h"
#include "daemon/peers/wire.h"
#include "libclient/instant.h"

namespace popgate {

/// Of the connection over which this node tells the peer.
enum class LinkState : std::uint8_t {
  kWaiting,  // for the next attempt
  kConnecting,
  kGreeting,  // hello sent
  kSnapshot,  // sending everything
  kLive,      // sending news
};
[[nodiscard]] std::string_view link_state_name(LinkState state);

struct PeerStatus {
  std::string name;
  std::string address;

  // Telling the peer.
  LinkState state = LinkState::kWaiting;
  HostInstant since{};      // of this state
  std::uint64_t lag = 0;    // entries sent and not acknowledged
  bool up_to_date = false;  // live, and everything is acknowledged
  std::optional<microseconds> rtt;
  std::optional<microseconds> skew;  // the peer's wall clock less ours
  std::uint64_t acks_timed = 0;      // decisions of this node
  microseconds ack_p50{0};           // from the decision until the peer had published it
  microseconds ack_p99{0};
  microseconds ack_max{0};

  // Hearing from the peer.
  bool heard = false;  // its connection to us is up
  std::optional<HostInstant> last_heard;
  bool said_goodbye = false;                 // it stopped in good order
  std::optional<bool> digest_equal;          // its set and ours, when last compared
  std::optional<bool> rules_equal;           // its rules' revision and ours
  std::optional<bool> members_equal;         // its list of members and ours
  std::optional<bool> brakes_equal;          // what it was told about blocking and what we were
  std::optional<wire::NodeFigures> figures;  // what it last told of itself
  std::uint64_t incarnation = 0;             // of its daemon
  std::optional<CountLag> count_lag;         // what it has not counted yet, by what it last told
  std::vector<wire::SecretName> secrets;     // as it said last; empty before its first hello
  std::optional<bool> counts_alike;          // it counts under one of the secrets under which this node counts

  // Its certificate's end or that of a CA above it, as it told last, also when it is no longer heard. It knows of a
  // renewal at once; the connections that were made before do not.
  std::optional<PopInstant> certificate_until;
  std::optional<microseconds> certificate_left;  // below 0: it has ended by this node's clock

  std::string last_error;
  std::uint64_t connects = 0;  // times that telling began
  std::uint64_t losses = 0;
  std::uint64_t slow_cuts = 0;     // its output buffer passed the bound
  std::uint64_t rubbish_cuts = 0;  // it sent what is no message of ours
  std::uint64_t resends = 0;       // parts sent again because digests differed
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t frames_in = 0;
  std::uint64_t frames_out = 0;
};

struct MeshStatus {
  std::string listen;
  std::vector<PeerStatus> peers;
  double coverage = 1;  // share of the configured peers that have acknowledged everything
};

}  // namespace popgate
