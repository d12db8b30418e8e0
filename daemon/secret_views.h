// SPDX-License-Identifier: Apache-2.0
//
// What an operator sees of hash secrets: their ids, and which are counted under; never a secret.
//
// Threads: pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/peers/peer_status.h"
#include "libclient/key.h"

namespace popgate {

/// [{"id", "counted"}, …], the first one first.
[[nodiscard]] nlohmann::json secrets_of(const std::vector<wire::SecretName>& names);
[[nodiscard]] nlohmann::json secrets_of(const HashSecrets& secrets);

/// The name of a peer with a secret that is none of `own`.
[[nodiscard]] std::optional<std::string> peer_with_more_secrets(const HashSecrets& own,
                                                                const std::vector<PeerStatus>& peers);

}  // namespace popgate
