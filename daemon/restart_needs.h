// SPDX-License-Identifier: Apache-2.0
//
// What of a newly read configuration a running daemon can take over, and what has to wait for a restart.
//
// Rules, trusted proxies, the clock tolerance, the log level and the certificates of mesh.tls change at once.
// Everything that shapes memory or connections does not: an operator is told the names of such options instead of
// finding out.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "daemon/config.h"

namespace popgate {

/// Names of the options that differ and only count after a restart, in the order of the manual.
[[nodiscard]] std::vector<std::string> needs_restart(const Config& running, const Config& wanted);

}  // namespace popgate
