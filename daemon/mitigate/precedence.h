// SPDX-License-Identifier: Apache-2.0
//
// Which of two entries stands, and what two copies must share to be the same entry.
//
// The order and the digest come from the same bytes (version and content), so that they cannot disagree. The end is not
// content: copies of one entry differ in it by the time they travelled, and merging takes the earlier.
//
// Threads: pure functions.
// Invariants: 1. The same on every node, host and release: numbers most significant byte first, strings with lengths.
#pragma once

#include <compare>
#include <cstdint>

#include "daemon/mitigate/mitigation.h"

namespace popgate {

/// Greater: `a` stands and `b` gives way. By version; between equal versions (a decider that lost its memory, or a
/// fault) by content, so that every node chooses the same.
[[nodiscard]] std::strong_ordering precedence(const Mitigation& a, const Mitigation& b);

/// 64 bits over kind, key, version and content.
[[nodiscard]] std::uint64_t entry_hash(const Mitigation& mitigation);

}  // namespace popgate
