// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge_totals.h"

#include <algorithm>

#include "daemon/mitigate/own_share.h"

namespace popgate {
namespace {

// The wall clock is coarse: an end that was computed from it is late by up to a kernel tick, so of two for the same
// hits neither is later than the other by more. For others the end in force may be too early by as much, less what the
// table rounds it up by, which is up to 16 ms.
constexpr milliseconds kWallTickMax{10};

/// Why and for how long a key is to be mitigated.
struct Finding {
  Evidence evidence;
  Judgement judgement;
};

Evidence evidence_of(const Rate& rate, std::uint64_t limit, DecidedUnder under) {
  return {.lo = rate.lo, .estimate = rate.estimate, .hi = rate.hi, .limit = limit, .under = under};
}

std::optional<Finding> by_limit(const KeyView& view, const Rule& rule, const Rate& rate, HostInstant now,
                                DecidedUnder under) {
  if (!is_over(rule, rate)) return std::nullopt;
  const auto fall_to = [&](double level) {
    return time_until_figure_is(deciding_figure(rule), level, view.totals, view.slots, view.now, view.ignored_through);
  };
  Judgement judgement = judgement_of(rule, fall_to(admitting_level(rule)), now);
  if (rule.count == CountMode::kAll) {
    judgement.admitted_from = judgement_of(rule, fall_to(fitting_level(rule)), now).admitted_from - kWallTickMax;
  }
  return Finding{evidence_of(rate, rule.limit, under), judgement};
}

std::optional<Finding> by_own_share(const KeyView& view, const Rule& rule, const Rate& rate, HostInstant now,
                                    std::uint32_t members) {
  if (rule.policy == Policy::kCertain) return by_limit(view, rule, rate, now, DecidedUnder::kLocal);
  const OwnShare share = own_share(view, rule, members);
  const bool is_over_all = rate.estimate > static_cast<double>(rule.limit);
  if (!is_over_all && share.own <= static_cast<double>(share.share)) return std::nullopt;
  return Finding{evidence_of(rate, share.limit, DecidedUnder::kLocal), judgement_of(rule, share.fall, now)};
}

std::optional<Finding> whoever_comes(const KeyView& view, const Rule& rule, const Rate& rate, HostInstant now) {
  const bool came = std::ranges::any_of(view.totals.slots, [&](const SlotCount& count) {
    const bool counts =
        count.slot >= view.slots.first_touching(view.now) && count.slot > view.ignored_through.value_or(INT64_MIN);
    return counts && count.known + count.unsent + count.hidden > 0;
  });
  if (!came) return std::nullopt;
  return Finding{evidence_of(rate, rule.limit, DecidedUnder::kClosed), closed_judgement(now)};
}

std::optional<Finding> without_counters(const KeyView& view, const Rule& rule, const Rate& rate, HostInstant now,
                                        std::uint32_t members) {
  switch (rule.on_counter_failure) {
    case OnCounterFailure::kLocal:
    case OnCounterFailure::kOpen:
      return by_own_share(view, rule, rate, now, members);
    case OnCounterFailure::kClosed:
      return whoever_comes(view, rule, rate, now);
  }
  return std::nullopt;
}

// Own hits with stamps of a clock that is off, or that nobody has compared yet, may lie beside known hits of another
// time, in one window by the slots and in none by any right clock: their sum is no lower bound.
bool is_lo_in_doubt(const SlotTotals& totals, const Rule& rule) {
  return totals.clock_in_doubt && rule.policy == Policy::kCertain;
}

}  // namespace

Judgement closed_judgement(HostInstant now) { return {now + kClosedLasting, now + kClosedLasting}; }

std::optional<SlotIndex> lifted_through(const Mitigations& mitigations, const KeySlots& slots, const Key& key) {
  const std::optional<PopInstant> watermark = mitigations.watermark(key);
  if (!watermark) return std::nullopt;
  return slots.slot_at(*watermark);
}

JudgedTotals judge_totals(const SlotTotals& totals, const Rule& rule, Mitigations& mitigations, BothInstants now,
                          std::uint32_t members) {
  const KeySlots slots(rule.window, totals.key);
  const KeyView view{totals, slots, now.pop, lifted_through(mitigations, slots, totals.key)};
  JudgedTotals judged{.rate = estimate_rate(totals, slots, now.pop, view.ignored_through), .outcome = std::nullopt};
  if (!rule.enabled) return judged;
  const std::optional<Finding> finding = totals.degraded
                                             ? without_counters(view, rule, judged.rate, now.host, members)
                                             : by_limit(view, rule, judged.rate, now.host, DecidedUnder::kCounters);
  if (!finding) return judged;
  const bool is_withheld = totals.degraded && rule.on_counter_failure == OnCounterFailure::kOpen;
  if (is_withheld || is_lo_in_doubt(totals, rule)) {
    mitigations.withhold();
    return judged;
  }
  judged.under = finding->evidence.under;
  judged.outcome = mitigations.decide({totals.key, rule, finding->evidence, finding->judgement}, now.host, now.pop);
  return judged;
}

}  // namespace popgate
