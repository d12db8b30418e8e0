// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bracket_check.h"

#include "daemon/mitigate/judge.h"

namespace popgate::simulation {

void BracketCheck::judged(Node& node, const SlotTotals& totals, const JudgedTotals& judged) {
  const Rule* const rule = node.pipeline().rules()->by_number(totals.rule);
  if (rule == nullptr || !clocks_are_right(rule->window)) return;
  look_at_lo(node, totals, judged, *rule);
  look_at_hi(node, totals, judged, *rule);
}

bool BracketCheck::clocks_are_right(const WindowShape& shape) const {
  const auto since = pop_.conditions().clocks_right_since();
  if (!since) return false;
  return *since == ModelInstant{} || pop_.world().now() - *since > shape.window + shape.slot + kQuietFor;
}

void BracketCheck::look_at_lo(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule) {
  ++looked_at_lo_;
  const ModelInstant now = pop_.world().now();
  const std::uint64_t truly = pop_.truth().hits_of(totals.key).between(now - rule.window.window, now);
  if (judged.rate.lo > truly) {
    return pop_.broken("4", node.name() + " holds " + std::to_string(judged.rate.lo) + " as lower bound of key " +
                                key_text(totals.key) + " of " + rule.name + ", which truly made " +
                                std::to_string(truly) + " hits in the window");
  }
  const bool mitigated = judged.outcome == DecideOutcome::kDecided || judged.outcome == DecideOutcome::kRenewed;
  const bool by_counters = judged.under != DecidedUnder::kClosed;
  if (mitigated && by_counters && deciding_figure(rule) == RateFigure::kLo && truly <= rule.limit) {
    pop_.broken("5", node.name() + " mitigates key " + key_text(totals.key) + " of " + rule.name +
                         " under `certain`, which truly made " + std::to_string(truly) + " hits of " +
                         std::to_string(rule.limit));
  }
}

void BracketCheck::look_at_hi(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule) {
  if (!totals.fresh || !judged.rate.hi || node.pipeline().memcached() == nullptr) return;
  if (node.pipeline().mitigations().watermark(totals.key)) return;  // what was lifted away is left out
  const ModelInstant now = pop_.world().now();
  const auto calm = pop_.conditions().calm_since();
  const bool quiet =
      calm && (*calm == ModelInstant{} || now - *calm > rule.window.window + rule.window.slot + kQuietFor);
  const HostNumber shard = Pop::kFirstShard + node.pipeline().memcached()->placement().shard_of(totals.key);
  const auto evicted = evicted_at_.find(shard);
  const bool watching = evicted == evicted_at_.end() || now - evicted->second > kEvictionsNoticed;
  if (!quiet || !watching) return;
  ++looked_at_hi_;
  const KeySlots slots(rule.window, totals.key);
  const PopInstant wall = node.machine().wall_now();
  std::uint64_t told = 0;
  for (SlotIndex slot = slots.first_touching(wall); slot <= slots.last_touching(wall); ++slot) {
    told += pop_.truth().counted_in(totals.key, rule.window.slot, slot).until(now - kUnreadMax);
  }
  if (*judged.rate.hi >= told) return;
  pop_.broken("11", node.name() + " claims " + std::to_string(*judged.rate.hi) + " as upper bound of key " +
                        key_text(totals.key) + " of " + rule.name + ", of which its shard was told " +
                        std::to_string(told) + " hits");
}

}  // namespace popgate::simulation
