// SPDX-License-Identifier: Apache-2.0
//
// Who this node is to its peers, and whether a peer's hello may be answered.
//
// Two daemons that disagree on the PoP, on the secret under which keys are made, or on who they are, must not share
// mitigations: every key would mean another client. While a PoP changes its secret each node has two, and one in common
// is enough. They part with a sentence that the dialler logs and shows.
//
// Threads: pure functions.
// Invariants: 1. A hello that is let in names a member, speaks a version of ours and has a secret in common with us.
// Limits: those of wire.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/peers/wire.h"
#include "daemon/result.h"
#include "libclient/key.h"

namespace popgate {

inline constexpr std::uint32_t kMeshVersionMin = 1;
inline constexpr std::uint32_t kMeshVersionMax = 1;

struct MeshIdentity {
  std::string pop;
  std::string node;
  std::uint64_t incarnation = 0;
  std::uint64_t secret_id = 0;                    // of the first secret
  std::optional<wire::SecretName> second_secret;  // while one secret takes another's place
  std::uint64_t rules_revision = 0;
  std::vector<std::string> members;  // of the PoP, this node included, sorted
  std::uint32_t version_min = kMeshVersionMin;
  std::uint32_t version_max = kMeshVersionMax;
};

/// How peers are told of the second secret; empty when there is none.
[[nodiscard]] std::optional<wire::SecretName> second_secret_name(const HashSecrets& secrets);

[[nodiscard]] wire::Hello hello_of(const MeshIdentity& identity, HostInstant now);

/// What a hello says of its sender's secrets, the first one first; one of an earlier release names one only.
[[nodiscard]] std::vector<wire::SecretName> secrets_of(const wire::Hello& hello);
/// True when they have a secret in common. Otherwise every key of theirs would mean another client.
[[nodiscard]] bool share_a_secret(const MeshIdentity& own, const std::vector<wire::SecretName>& theirs);
/// True when both count hits under one and the same secret. Otherwise neither sees all hits under its own: a step of
/// the change of secrets was left out.
[[nodiscard]] bool count_alike(const MeshIdentity& own, const std::vector<wire::SecretName>& theirs);

/// The version that both speak, or why not. `expected_node`: who is configured at the address that was dialled.
[[nodiscard]] Result<std::uint32_t> check_hello(const MeshIdentity& own, const wire::Hello& theirs,
                                                std::optional<std::string_view> expected_node);

}  // namespace popgate
