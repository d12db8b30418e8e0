// SPDX-License-Identifier: Apache-2.0
//
// Decides one request: which of its keys are mitigated, whether it passes, and which of its hits count.
//
// A rule that only logs is judged as one that blocks: its live mitigation keeps its own hits from being counted, so
// that what it would have done can be read from what it did. It just does not stop the request. An operator's block
// stops it under any rule. While an operator or a fuse has turned blocking off, everything that is turned off is judged
// as under a rule that only logs. While the PoP's secret changes, a match is mitigated when its key under either is.
//
// Threads: pure, apart from the table that another process changes.
// Limits: kMatchesMax matches.
#pragma once

#include <cstdint>

#include "libclient/check/table_reader.h"
#include "libclient/match/matcher.h"
#include "libclient/match/rules_view.h"

namespace popgate {

struct Decision {
  bool blocked = false;
  bool would_block = false;    // independent of `blocked`
  std::uint32_t counted = 0;   // bit i: the hit of match i counts
  std::uint32_t fused = 0;     // bit i: match i's rule has a fuse, and itself blocks the request or would
  std::uint32_t deciding = 0;  // of the rules that block, or else of those that would: the match that ends last
  bool by_second = false;      // that one is mitigated under the second secret
  microseconds remaining{0};   // of that one
};
static_assert(kMatchesMax <= 32);

/// `chance`: a random byte; a throttled key passes when it is below the key's admitted share.
[[nodiscard]] Decision decide(const RulesView& rules, const TableReader& table, const Matches& matches,
                              std::uint8_t chance) noexcept;

/// Whole seconds, rounded up, at least 1: a client that waits for them is not turned away again.
[[nodiscard]] std::uint32_t retry_after_s(microseconds remaining) noexcept;

}  // namespace popgate
