// SPDX-License-Identifier: Apache-2.0
//
// What one node may let pass of a key alone, while the key's counters cannot be counted on.
//
// The room that the last totals left is divided by the members of the PoP:
//
//     room = limit - the estimate of what was read,   share = ceil(room / N), at least one request
//
// A window after the failure nothing that was read counts any more, and the share is limit / N. Until then it grows
// from what was left: were a node's own hits of before the failure held against limit / N, every client that always
// comes to one node would be mitigated at once when a shard fails, although its whole count is known. So N nodes
// together let pass at most limit + N hits more in a window than were known; a client that only one node sees is held
// to limit / N of a limit (a rule for such clients should be `certain` or `open`).
//
// Threads: pure functions.
#pragma once

#include <optional>

#include "daemon/estimate/rate.h"
#include "daemon/mitigate/judge.h"

namespace popgate {

/// What the figures of a key are computed from.
struct KeyView {
  const SlotTotals& totals;
  const KeySlots& slots;
  PopInstant now;
  std::optional<SlotIndex> ignored_through;
};

struct OwnShare {
  double own = 0;           // estimate of this node's hits that no shard has confirmed
  std::uint64_t share = 0;  // so many of them may pass
  std::uint64_t limit = 0;  // the same of the estimate over all: what was read, and the share
  microseconds fall{0};     // until one more request fits
};

/// `members`: configured members of the PoP, this node included.
[[nodiscard]] OwnShare own_share(const KeyView& view, const Rule& rule, std::uint32_t members);

}  // namespace popgate
