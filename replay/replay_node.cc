// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_node.h"

#include "daemon/mitigate/judge_totals.h"

namespace popgate {

ReplayNode::ReplayNode(Setup setup, EventQueue& events, Callbacks callbacks)
    : setup_(std::move(setup)),
      events_(events),
      callbacks_(std::move(callbacks)),
      ledger_(Ledger::in_memory()),
      collector_({.seed = setup_.seed}, *ledger_),
      store_({.counters = setup_.counters, .ledger = ledger_.get(), .rules = setup_.rules, .keys_max = setup_.keys_max},
             [this](const SlotTotals& totals, PopInstant) {
               reply_->push_back(
                   {totals.key, totals.rule, {totals.slots.begin(), totals.slots.end()}, totals.counters_lost});
             }),
      mitigations_({.node_name = "node" + std::to_string(setup_.index + 1), .incarnation = 1},
                   [this](const Mitigation& mitigation, const Origin& origin) { change(mitigation, origin); }) {
  for (const Rule& rule : setup_.rules->all()) {
    const auto number = ledger_->number_for(rule.id);
    POPGATE_ASSERT(number == rule.number);  // replayer.cc numbers the rules as a fresh ledger does
  }
  collector_.use_rules(setup_.rules);
  mitigations_.use_rules(setup_.rules, host_time(PopInstant{}));
  mitigations_.allow_originating(0);
}

void ReplayNode::record(const Hit& hit) {
  ledger_->add(hit.rule, LedgerColumn::kDrained, hit.cost);
  collector_.add(hit, events_.now());
  schedule_flush();
}

// At the node's next tick; without hits there is nothing to wake up for.
void ReplayNode::schedule_flush() {
  if (flush_is_due_) return;
  flush_is_due_ = true;
  const std::int64_t interval = setup_.flush_interval.count();
  const std::int64_t since = events_.now().time_since_epoch().count() - setup_.flush_phase.count();
  const std::int64_t into = (since % interval + interval) % interval;
  events_.at(events_.now() + microseconds(interval - into), [this] { flush(); });
}

void ReplayNode::flush() {
  flush_is_due_ = false;
  const PopInstant now = events_.now();
  collector_.flush(now, sums_);
  store_.tick(now);
  while (mitigations_.expire(host_time(now))) {
  }
  if (sums_.empty()) return;
  events_.at(now + setup_.round_trip / 2, [this, sums = sums_] { submit(sums); });
}

void ReplayNode::submit(const std::vector<HitSum>& sums) {
  reply_ = std::make_shared<std::vector<Totals>>();
  store_.submit(sums, events_.now());
  events_.at(events_.now() + setup_.round_trip - setup_.round_trip / 2, [this, reply = std::move(reply_)] {
    for (const Totals& totals : *reply) judge(totals);
  });
}

void ReplayNode::judge(const Totals& totals) {
  const Rule* rule = setup_.rules->by_number(totals.rule);
  if (rule == nullptr) return;
  const PopInstant now = events_.now();
  const SlotTotals read{.key = totals.key,
                        .rule = totals.rule,
                        .slots = totals.slots,
                        .fresh = true,
                        .counters_lost = totals.counters_lost};
  const JudgedTotals judged = judge_totals(read, *rule, mitigations_, {host_time(now), now});
  callbacks_.on_judged(totals.key, totals.rule, now, judged.rate);
  if (judged.outcome != DecideOutcome::kDecided && judged.outcome != DecideOutcome::kRenewed) return;
  const Mitigation* decided = mitigations_.find(totals.key).automatic;
  POPGATE_ASSERT(decided != nullptr);
  callbacks_.on_decided(*decided, totals.rule, now, judged.rate);
  callbacks_.on_enforced(*decided, now, true);
}

// What was decided here is reported in judge(), after the oracle has heard of the decision.
void ReplayNode::change(const Mitigation& mitigation, const Origin& origin) {
  if (origin.kind != Origin::Kind::kPeer || !enforces(mitigation.key)) return;
  callbacks_.on_enforced(mitigation, events_.now(), false);
}

bool ReplayNode::enforces(const Key& key) const {
  return mitigations_.enforcement(key, host_time(events_.now())).has_value();
}

void ReplayNode::hear(const Mitigation& news, NodeId from) {
  // An outcome of "unchanged" is as good as "changed": this node had decided the same already.
  (void)mitigations_.merge(news, Origin{Origin::Kind::kPeer, from}, host_time(events_.now()));
}

}  // namespace popgate
