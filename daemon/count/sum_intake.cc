// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/sum_intake.h"

#include "daemon/collect/ledger.h"

namespace popgate {

void SumIntake::take(std::span<const HitSum> sums, const RuleSet& rules, KeyWindows& windows, PopInstant now,
                     const std::function<void(WindowIndex)>& taken) {
  for (const HitSum& sum : sums) {
    const Rule* const rule = rules.by_number(sum.rule);
    if (rule == nullptr) {
      unknown_rule_hits_ += sum.hits;
      ledger_.add(sum.rule, LedgerColumn::kDropped, sum.hits);
      continue;
    }
    const WindowIndex index = windows.take(sum, rule->window, now);
    if (index != kNoWindow) taken(index);
  }
}

void SumIntake::visit(const MetricVisitor& visitor) const {
  visitor({"popgate_count_unknown_rule_hits_dropped",
           "hits",
           "Hits under a rule number that no rule has.",
           static_cast<double>(unknown_rule_hits_),
           true,
           {},
           {}});
}

}  // namespace popgate
