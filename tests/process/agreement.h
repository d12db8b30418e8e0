// SPDX-License-Identifier: Apache-2.0
//
// Whether all nodes of a PoP hold the same mitigations, compared entry by entry by the test itself.
//
// Threads: one thread at a time.
#pragma once

#include <chrono>
#include <string>

#include "tests/process/pop.h"

namespace popgate::process {

/// Which entry which node lacks or has in another version; "" when all hold the same set.
[[nodiscard]] std::string disagreement(Pop& pop);

/// How long from now until they agree; a negative time when they do not within the deadline.
[[nodiscard]] std::chrono::milliseconds time_to_agree(Pop& pop, std::chrono::milliseconds deadline);

}  // namespace popgate::process
