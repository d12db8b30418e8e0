// SPDX-License-Identifier: Apache-2.0
//
// From the totals of one key to a decision: the bracket, the judgement, and the entry in the set.
//
// The daemon and the replay both call it for everything that count reports, so that what is measured on logs is what
// runs at the edge. While the key's shard cannot be counted on, the rule's on_counter_failure says how to judge:
//
//     local   under estimate and cautious (whose upper bound is unknown then) this node's own hits against its share
//             (own_share.h), under certain what is known and its own against the whole limit
//     open    nobody new
//     closed  whoever has a hit in the window, for kClosedLasting (closed_keys.h renews it)
//
// Threads: the event loop's.
// Invariants: 1. What an operator lifted away no longer counts: slots up to the lift's watermark are left out.
//             2. Under the policy certain nothing is mitigated that lo is not against, in whichever mode; but a
//                throttle goes by the estimate.
#pragma once

#include <optional>

#include "daemon/count/counter_store.h"
#include "daemon/estimate/rate.h"
#include "daemon/mitigate/mitigations.h"

namespace popgate {

struct BothInstants {
  HostInstant host;
  PopInstant pop;
};

/// Long enough for every node to hear of a renewal two seconds before the end, and short enough that a client waits
/// little longer than the failure lasts.
inline constexpr std::chrono::seconds kClosedLasting{5};

struct JudgedTotals {
  Rate rate;
  std::optional<DecideOutcome> outcome;  // empty: the rate is not over the limit
  DecidedUnder under = DecidedUnder::kCounters;
};

/// `members`: configured members of the PoP, this node included.
JudgedTotals judge_totals(const SlotTotals& totals, const Rule& rule, Mitigations& mitigations, BothInstants now,
                          std::uint32_t members = 1);

[[nodiscard]] Judgement closed_judgement(HostInstant now);

/// The slots up to which nothing counts for the key any more.
[[nodiscard]] std::optional<SlotIndex> lifted_through(const Mitigations& mitigations, const KeySlots& slots,
                                                      const Key& key);

}  // namespace popgate
