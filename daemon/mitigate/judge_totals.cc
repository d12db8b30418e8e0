// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge_totals.h"

namespace popgate {

std::optional<SlotIndex> lifted_through(const Mitigations& mitigations, const KeySlots& slots, const Key& key) {
  const std::optional<PopInstant> watermark = mitigations.watermark(key);
  if (!watermark) return std::nullopt;
  return slots.slot_at(*watermark);
}

JudgedTotals judge_totals(const SlotTotals& totals, const Rule& rule, Mitigations& mitigations, BothInstants now) {
  const KeySlots slots(rule.window, totals.key);
  const std::optional<SlotIndex> ignored = lifted_through(mitigations, slots, totals.key);
  JudgedTotals judged{.rate = estimate_rate(totals, slots, now.pop, ignored), .outcome = std::nullopt};
  const Rate& rate = judged.rate;
  if (!is_over(rule, rate)) return judged;
  const microseconds fall =
      time_until_figure_is(deciding_figure(rule), admitting_level(rule), totals, slots, now.pop, ignored);
  const std::optional<Judgement> judgement = judge(rule, rate, fall, now.host);
  if (!judgement) return judged;
  const Evidence evidence{.lo = rate.lo, .estimate = rate.estimate, .hi = rate.hi, .limit = rule.limit};
  judged.outcome = mitigations.decide({totals.key, rule, evidence, *judgement}, now.host, now.pop);
  return judged;
}

}  // namespace popgate
