// SPDX-License-Identifier: Apache-2.0
//
// The bracket around a key's true hits in the trailing window (now - W, now], and the estimate between.
//
//     lo  = sum of (known + unsent) over slots that start strictly later than now - W + D
//     est = sum of (known + unsent) x the fraction of the slot that lies later than now - W
//     hi  = sum of (known + unsent + hidden) over slots that end later than now - W - D
//           + what peers say may have been counted or not
//           unknown unless every slot was just read, after lost counters, while the shard cannot be counted on, and
//           while a peer holds hits back or nobody knows whether it does
//
// With k = 1 and D = 0, est is the two-counter estimate that the field uses: previous x (1 - elapsed) + current.
// All three stop at the slot of now + D: a slot further ahead was left by a clock that has stepped back.
// `unsent` counts in lo: these hits happened, and no total that was ever read can contain them.
//
// Threads: pure functions.
// Invariants: 1. lo <= est <= hi (when hi is known).
//             2. With time and no further hit, none of the three rises.
// Cost: O(slots) for a rate, O(slots^2) for the time of falling, which is only asked when a rule is crossed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "daemon/count/counter_store.h"
#include "daemon/window.h"

namespace popgate {

struct Rate {
  std::uint64_t lo = 0;
  double estimate = 0;
  std::optional<std::uint64_t> hi;  // empty: unknown
};

/// `ignored_through`: slots up to this one hold nothing for the key (an operator lifted it then); empty: none.
[[nodiscard]] Rate estimate_rate(const SlotTotals& totals, const KeySlots& slots, PopInstant now,
                                 std::optional<SlotIndex> ignored_through);

enum class RateFigure : std::uint8_t { kLo, kEstimate, kHi };

/// How long until a figure has fallen to `level` if no further hit comes; 0 when it is there already. Of an unknown hi:
/// as if it were known, which is never earlier than the estimate.
[[nodiscard]] microseconds time_until_figure_is(RateFigure figure, double level, const SlotTotals& totals,
                                                const KeySlots& slots, PopInstant now,
                                                std::optional<SlotIndex> ignored_through);

}  // namespace popgate
