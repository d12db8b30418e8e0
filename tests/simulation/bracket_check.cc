// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/bracket_check.h"

#include "daemon/mitigate/judge.h"

namespace popgate::simulation {
namespace {

microseconds whole_window(const WindowShape& shape) { return shape.window + shape.slot + 2 * shape.tolerance; }

}  // namespace

void BracketCheck::judged(Node& node, const SlotTotals& totals, const JudgedTotals& judged) {
  const Rule* const rule = node.pipeline().rules()->by_number(totals.rule);
  if (rule == nullptr) return;
  const std::uint64_t most = most_in_window(node, totals.key, rule->window);
  look_at_lo(node, totals, judged, *rule, most);
  look_at_certain(node, totals, judged, *rule, most);
  look_at_hi(node, totals, judged, *rule);
}

// Truly made in the window, and what wrong clocks could put there.
std::uint64_t BracketCheck::most_in_window(Node& node, const Key& key, const WindowShape& shape) const {
  const ModelInstant now = pop_.world().now();
  std::uint64_t most = pop_.truth().hits_of(key).between(now - shape.window, now);
  const KeySlots slots(shape, key);
  const PopInstant wall = node.machine().wall_now();
  for (SlotIndex slot = slots.first_touching(wall); slot <= slots.last_touching(wall); ++slot) {
    most += pop_.truth().excused_in(key, shape.slot, slot);
  }
  return most;
}

void BracketCheck::look_at_lo(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule,
                              std::uint64_t most) {
  if (node.machine().was_off_within(whole_window(rule.window))) return;  // its own stamps fit no total
  ++looked_at_lo_;
  if (judged.rate.lo <= most) return;
  pop_.broken("4", node.name() + " holds " + std::to_string(judged.rate.lo) + " as lower bound of key " +
                       key_text(totals.key) + " of " + rule.name + ", which made no more than " + std::to_string(most) +
                       " hits in the window");
}

void BracketCheck::look_at_certain(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule,
                                   std::uint64_t most) {
  const bool mitigated = judged.outcome == DecideOutcome::kDecided || judged.outcome == DecideOutcome::kRenewed;
  const bool by_counters = judged.under != DecidedUnder::kClosed;
  if (!mitigated || !by_counters || deciding_figure(rule) != RateFigure::kLo || most > rule.limit) return;
  if (pop_.stamps().was_blind_within(node, whole_window(rule.window))) return;
  pop_.broken("5", node.name() + " mitigates key " + key_text(totals.key) + " of " + rule.name +
                       " under `certain`, which made no more than " + std::to_string(most) + " hits of " +
                       std::to_string(rule.limit));
}

void BracketCheck::look_at_hi(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule) {
  if (!totals.fresh || !judged.rate.hi || node.pipeline().memcached() == nullptr) return;
  if (node.pipeline().mitigations().watermark(totals.key)) return;  // what was lifted away is left out
  const ModelInstant now = pop_.world().now();
  const HostNumber shard = Pop::kFirstShard + node.pipeline().memcached()->placement().shard_of(totals.key);
  const auto evicted = evicted_at_.find(shard);
  const bool watching = evicted == evicted_at_.end() || now - evicted->second > kEvictionsNoticed;
  if (!watching) return;
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
