// SPDX-License-Identifier: Apache-2.0
//
// `popgatectl secret new FILE` and `secret id FILE`: files of hash secrets, without a daemon.
//
// Threads: any. Reads and writes files.
// Invariants: 1. A secret is never printed, and never written over.
#pragma once

#include <string>

#include "daemon/ctl_command.h"
#include "daemon/result.h"

namespace popgate {

/// The secret's id, for standard output.
[[nodiscard]] Result<std::string> secret_command(const CtlCommand& command);

}  // namespace popgate
