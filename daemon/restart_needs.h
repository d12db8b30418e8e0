// SPDX-License-Identifier: Apache-2.0
//
// What of a newly read configuration a running daemon can take over, and what has to wait for a restart.
//
// Rules, trusted proxies, the clock tolerance, the log level, the certificates of mesh.tls and the steps of a change of
// hash secrets change at once.
// Everything that shapes memory or connections does not: an operator is told the names of such options instead of
// finding out.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "daemon/config.h"

namespace popgate {

/// The secrets that the running node can go on with: those of `wanted`, unless their first one is new to this node.
/// Every key would then be another, and what is in force forgotten; a secret comes in as the next one
/// (docs/operations.md).
[[nodiscard]] HashSecrets secrets_after_reload(const Config& running, const Config& wanted);

/// Names of the options that differ and only count after a restart, in the order of the manual.
[[nodiscard]] std::vector<std::string> needs_restart(const Config& running, const Config& wanted);

}  // namespace popgate
