// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/accounts_check.h"

namespace popgate::simulation {

void AccountsCheck::look(Node& node) {
  Ledger& ledger = node.pipeline().ledger();
  std::uint64_t pending = 0;
  for (const Rule& rule : pop_.rules().all()) {
    const auto number = ledger.number_for(rule.id);
    POPGATE_ASSERT(number.has_value());
    const LedgerRow row = ledger.row(*number);
    const std::uint64_t accounted = row[LedgerColumn::kDelivered] + row[LedgerColumn::kUncertain] +
                                    row[LedgerColumn::kDropped] + row[LedgerColumn::kExpired] +
                                    row[LedgerColumn::kLost];
    const std::uint64_t drained = row[LedgerColumn::kDrained];
    const std::uint64_t recorded = node.recorded(rule.id);
    if (recorded != drained + node.waiting(rule.id) + node.ring_dropped(rule.id)) {
      return pop_.broken("3", node.name() + ": workers recorded " + std::to_string(recorded) + " hits of " + rule.name +
                                  ", the ledger drained " + std::to_string(drained));
    }
    if (accounted > drained) {
      return pop_.broken("3", node.name() + ": " + std::to_string(accounted) + " hits of " + rule.name +
                                  " are accounted for, of " + std::to_string(drained) + " drained");
    }
    pending += drained - accounted;
  }
  look_at_held(node, pending);
}

// Only the store is asked: this is done at every turn.
void AccountsCheck::look_at_held(Node& node, std::uint64_t pending) {
  if (node.pipeline().collector().sums() > 0) return;  // it does not tell how many hits its sums hold
  double held = 0;
  bool told = false;
  node.pipeline().store().visit([&](const Metric& metric) {
    if (metric.name != "popgate_count_hits_unsent" && metric.name != "popgate_count_hits_in_flight") return;
    held += metric.value;
    told = true;
  });
  if (!told) return;  // counters in the daemon: nothing is ever under way
  if (held != static_cast<double>(pending)) {
    pop_.broken("3", node.name() + ": " + std::to_string(pending) +
                         " hits are pending in the ledger, the stages hold " + std::to_string(held));
  }
}

std::uint64_t AccountsCheck::total(LedgerColumn column) {
  std::uint64_t sum = 0;
  for (const auto& node : pop_.nodes()) {
    if (!node->is_running()) continue;
    for (const RuleNumber number : node->pipeline().ledger().rows())
      sum += node->pipeline().ledger().row(number)[column];
  }
  return sum;
}

void AccountsCheck::look_at_all() {
  for (const auto& node : pop_.nodes()) {
    if (!node->is_running()) return;
    look(*node);
  }
  if (pop_.shards().empty()) return;
  const std::uint64_t delivered = total(LedgerColumn::kDelivered);
  const std::uint64_t perhaps = total(LedgerColumn::kUncertain) + total(LedgerColumn::kLost);
  std::uint64_t under_way = 0;
  for (const auto& node : pop_.nodes()) {
    under_way += static_cast<std::uint64_t>(node->figure("popgate_count_hits_in_flight"));
  }
  const std::uint64_t counted = pop_.truth().counted();
  if (delivered <= counted && counted <= delivered + perhaps + under_way) return;
  pop_.broken("3", "the shards carried out " + std::to_string(counted) + " increments; delivered " +
                       std::to_string(delivered) + ", uncertain or lost " + std::to_string(perhaps) + ", under way " +
                       std::to_string(under_way));
}

}  // namespace popgate::simulation
