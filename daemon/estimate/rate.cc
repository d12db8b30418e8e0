// SPDX-License-Identifier: Apache-2.0
#include "daemon/estimate/rate.h"

#include <algorithm>

namespace popgate {
namespace {

// Hits that happened for certain: what was read, and own hits that no total ever read can contain.
std::uint64_t certain_hits(const SlotCount& count) { return count.known + count.unsent; }

// The slots that can hold hits of the window: not lifted away, and not ahead of the clock (left by a clock stepped
// back).
struct Span {
  std::optional<SlotIndex> ignored_through;
  SlotIndex last;
  [[nodiscard]] bool holds(SlotIndex slot) const {
    return slot <= last && (!ignored_through || slot > *ignored_through);
  }
};

// How much of the slot lies later than `edge`, from 0 to 1.
double fraction_later_than(PopInstant edge, SlotIndex slot, const KeySlots& slots) {
  const auto later = static_cast<double>((slots.end(slot) - edge).count());
  return std::clamp(later / static_cast<double>(slots.shape().slot.count()), 0.0, 1.0);
}

double estimate_at(PopInstant now, const SlotTotals& totals, const KeySlots& slots, const Span& span) {
  const PopInstant edge = now - slots.shape().window;
  double estimate = 0;
  for (const SlotCount& count : totals.slots) {
    if (!span.holds(count.slot)) continue;
    estimate += static_cast<double>(certain_hits(count)) * fraction_later_than(edge, count.slot, slots);
  }
  return estimate;
}

}  // namespace

Rate estimate_rate(const SlotTotals& totals, const KeySlots& slots, PopInstant now,
                   std::optional<SlotIndex> ignored_through) {
  const WindowShape& shape = slots.shape();
  const Span span{ignored_through, slots.last_touching(now)};
  Rate rate;
  rate.estimate = estimate_at(now, totals, slots, span);
  std::uint64_t hi = 0;
  for (const SlotCount& count : totals.slots) {
    if (!span.holds(count.slot)) continue;
    if (slots.start(count.slot) > now - shape.window + shape.tolerance) rate.lo += certain_hits(count);
    if (slots.end(count.slot) > now - shape.window - shape.tolerance) hi += certain_hits(count) + count.hidden;
  }
  if (!totals.counters_lost) rate.hi = hi;
  return rate;
}

// The estimate falls in straight lines: it bends only where the window's edge passes a slot's start or end. So the
// answer lies on the first piece whose end is at or below the level.
microseconds time_until_estimate_is(double level, const SlotTotals& totals, const KeySlots& slots, PopInstant now,
                                    std::optional<SlotIndex> ignored_through) {
  const Span span{ignored_through, slots.last_touching(now)};
  PopInstant from = now;
  double at_from = estimate_at(from, totals, slots, span);
  if (at_from <= level) return microseconds(0);
  for (SlotIndex slot = slots.first_touching(now); slot <= span.last; ++slot) {
    const PopInstant to = std::max(from, slots.end(slot) + slots.shape().window);
    const double at_to = estimate_at(to, totals, slots, span);
    if (at_to <= level) {
      const double share = (at_from - level) / (at_from - at_to);
      const auto ahead = static_cast<std::int64_t>(share * static_cast<double>((to - from).count()));
      return (from - now) + std::min(microseconds(ahead + 1), to - from);  // rounded up: never early
    }
    from = to;
    at_from = at_to;
  }
  return from - now;
}

}  // namespace popgate
