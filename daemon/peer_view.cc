// SPDX-License-Identifier: Apache-2.0
#include "daemon/peer_view.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "daemon/certificate_name.h"
#include "daemon/secret_views.h"

namespace popgate {
namespace {

using nlohmann::json;

double ms_of(microseconds duration) { return static_cast<double>(duration.count()) / 1000; }

json ms_or_null(const std::optional<microseconds>& duration) {
  return duration ? json(ms_of(*duration)) : json(nullptr);
}

json bool_or_null(const std::optional<bool>& value) { return value ? json(*value) : json(nullptr); }

json certificate_of(const PeerStatus& peer) {
  if (!peer.certificate_until || !peer.certificate_left) return nullptr;
  return {{"valid_until", certificate_time_text(*peer.certificate_until)},
          {"left_ms", std::chrono::floor<milliseconds>(*peer.certificate_left).count()}};
}

}  // namespace

json peer_view(const PeerStatus& peer, HostInstant now) {
  json enforced = nullptr;
  if (peer.acks_timed > 0) {
    enforced = {{"p50", ms_of(peer.ack_p50)}, {"p99", ms_of(peer.ack_p99)}, {"max", ms_of(peer.ack_max)}};
  }
  return {{"node", peer.name},
          {"address", peer.address},
          {"state", link_state_name(peer.state)},
          {"since_ms", std::chrono::ceil<milliseconds>(now - peer.since).count()},
          {"heard", peer.heard},
          {"up_to_date", peer.up_to_date},
          {"unacknowledged", peer.lag},
          {"skew_ms", ms_or_null(peer.skew)},
          {"round_trip_ms", ms_or_null(peer.rtt)},
          {"digest_equal", bool_or_null(peer.digest_equal)},
          {"rules_equal", bool_or_null(peer.rules_equal)},
          {"members_equal", bool_or_null(peer.members_equal)},
          {"brakes_equal", bool_or_null(peer.brakes_equal)},
          {"not_enforced", peer.figures ? json(peer.figures->not_enforced) : json(nullptr)},
          {"secrets", secrets_of(peer.secrets)},
          {"counts_alike", bool_or_null(peer.counts_alike)},
          {"certificate", certificate_of(peer)},
          {"said_goodbye", peer.said_goodbye},
          {"last_error", peer.last_error},
          {"enforced_ms", enforced},
          {"frames_sent", peer.frames_out},
          {"bytes_sent", peer.bytes_out}};
}

}  // namespace popgate
