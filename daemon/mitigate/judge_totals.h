// SPDX-License-Identifier: Apache-2.0
//
// From the totals of one key to a decision: the bracket, the judgement, and the entry in the set.
//
// The daemon and the replay both call it for everything that count reports, so that what is measured on logs is what
// runs at the edge.
//
// Threads: the event loop's.
// Invariants: 1. What an operator lifted away no longer counts: slots up to the lift's watermark are left out.
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

struct JudgedTotals {
  Rate rate;
  std::optional<DecideOutcome> outcome;  // empty: the rate is not over the limit
};

JudgedTotals judge_totals(const SlotTotals& totals, const Rule& rule, Mitigations& mitigations, BothInstants now);

/// The slots up to which nothing counts for the key any more.
[[nodiscard]] std::optional<SlotIndex> lifted_through(const Mitigations& mitigations, const KeySlots& slots,
                                                      const Key& key);

}  // namespace popgate
