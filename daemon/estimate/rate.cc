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

// The estimate falls in straight lines: it bends only where the window's edge passes a slot's start or end. So the
// answer lies on the first piece whose end is at or below the level.
microseconds time_until_estimate_is(double level, const SlotTotals& totals, const KeySlots& slots, PopInstant now,
                                    const Span& span) {
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

/// One slot's part in a bound, and when it counts no more: the bounds fall in steps.
struct BoundPart {
  std::uint64_t hits = 0;
  PopInstant leaves{};
};

BoundPart part_of(RateFigure bound, const SlotCount& count, const KeySlots& slots) {
  const WindowShape& shape = slots.shape();
  if (bound == RateFigure::kLo) {
    return {certain_hits(count), slots.start(count.slot) + shape.window - shape.tolerance};
  }
  return {certain_hits(count) + count.hidden, slots.end(count.slot) + shape.window + shape.tolerance};
}

std::uint64_t bound_at(RateFigure bound, PopInstant now, const SlotTotals& totals, const KeySlots& slots,
                       const Span& span) {
  std::uint64_t sum = 0;
  for (const SlotCount& count : totals.slots) {
    const BoundPart part = part_of(bound, count, slots);
    if (span.holds(count.slot) && part.leaves > now) sum += part.hits;
  }
  return sum;
}

microseconds time_until_bound_is(RateFigure bound, double level, PopInstant now, const SlotTotals& totals,
                                 const KeySlots& slots, const Span& span) {
  std::uint64_t left = bound_at(bound, now, totals, slots, span);
  PopInstant at = now;
  for (const SlotCount& count : totals.slots) {  // ascending, so the first to leave comes first
    if (static_cast<double>(left) <= level) break;
    const BoundPart part = part_of(bound, count, slots);
    if (!span.holds(count.slot) || part.leaves <= now) continue;
    left -= part.hits;
    at = part.leaves;
  }
  return at - now;
}

}  // namespace

Rate estimate_rate(const SlotTotals& totals, const KeySlots& slots, PopInstant now,
                   std::optional<SlotIndex> ignored_through) {
  const Span span{ignored_through, slots.last_touching(now)};
  Rate rate;
  rate.estimate = estimate_at(now, totals, slots, span);
  rate.lo = bound_at(RateFigure::kLo, now, totals, slots, span);
  if (totals.fresh && !totals.clock_in_doubt && !totals.counters_lost && !totals.degraded && !totals.peers.unknown) {
    rate.hi = bound_at(RateFigure::kHi, now, totals, slots, span) + totals.peers.uncertain;
  }
  return rate;
}

microseconds time_until_figure_is(RateFigure figure, double level, const SlotTotals& totals, const KeySlots& slots,
                                  PopInstant now, std::optional<SlotIndex> ignored_through) {
  const Span span{ignored_through, slots.last_touching(now)};
  if (figure == RateFigure::kEstimate) return time_until_estimate_is(level, totals, slots, now, span);
  return time_until_bound_is(figure, level, now, totals, slots, span);
}

}  // namespace popgate
