// SPDX-License-Identifier: Apache-2.0
//
// What an operator sees of one peer: an element of `peers` in docs/admin-api.md.
//
// Threads: pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/peers/peer_status.h"

namespace popgate {

[[nodiscard]] nlohmann::json peer_view(const PeerStatus& peer, HostInstant now);

}  // namespace popgate
