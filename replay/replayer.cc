// SPDX-License-Identifier: Apache-2.0
#include "replay/replayer.h"

namespace popgate {
namespace {

constexpr std::size_t kCountersPerKey = 4;  // counters are shared by all nodes: room for each node's own busiest keys

// What the design grants between a crossing and the decision: the next flush and its reply, the news of another node's
// hits in its next flush, and the mesh.
microseconds lag_of(const ReplayOptions& options) {
  return options.flush_interval + 2 * options.round_trip + options.mesh_delay;
}

}  // namespace

Replayer::Replayer(const ReplayOptions& options)
    : options_(options),
      matcher_(options.rules, options.secret),
      random_(options.seed),
      oracle_(matcher_.rules(), options.nodes, lag_of(options)),
      counters_(std::make_shared<MemoryCounters>(std::size_t{options.keys_max} * kCountersPerKey, options.seed)),
      chooser_(options.spread, options.nodes, random_()) {
  for (unsigned i = 0; i < options.nodes; ++i) nodes_.push_back(make_node(i));
}

std::unique_ptr<ReplayNode> Replayer::make_node(unsigned index) {
  ReplayNode::Setup setup;
  setup.index = index;
  setup.rules = matcher_.rules();
  setup.counters = counters_;
  setup.keys_max = options_.keys_max;
  setup.flush_interval = options_.flush_interval;
  setup.flush_phase = microseconds(static_cast<std::int64_t>(random_() >> 1) % options_.flush_interval.count());
  setup.round_trip = options_.round_trip;
  setup.seed = random_();
  ReplayNode::Callbacks callbacks;
  callbacks.on_judged = [this](const Key& key, RuleNumber rule, PopInstant now, const Rate& rate) {
    oracle_.judged(key, rule, now, rate);
  };
  callbacks.on_decided = [this](const Mitigation& decided, RuleNumber rule, PopInstant now, const Rate& rate) {
    oracle_.decided({decided.key, rule, now, pop_time(decided.until)}, &rate);
    if (options_.on_decided) options_.on_decided(decided, now);
  };
  callbacks.on_enforced = [this, index](const Mitigation& mitigation, PopInstant now, bool local) {
    oracle_.enforced(index, mitigation.key, now);
    if (local) tell_others(mitigation, index);
  };
  return std::make_unique<ReplayNode>(std::move(setup), events_, std::move(callbacks));
}

void Replayer::tell_others(const Mitigation& mitigation, unsigned from) {
  for (unsigned to = 0; to < nodes_.size(); ++to) {
    if (to == from) continue;
    events_.at(events_.now() + options_.mesh_delay,
               [this, mitigation, to, from] { nodes_[to]->hear(mitigation, nodes_[from]->id()); });
  }
}

void Replayer::request(const LoggedRequest& logged) {
  events_.run_until(logged.time);
  const std::uint64_t client = client_number(logged.client);
  const unsigned index = chooser_.choose(client);
  ReplayNode& node = *nodes_[index];
  const RuleSet& rules = *matcher_.rules();
  Matches matches;
  matcher_.find(logged, matches);
  ObservedRequest observed;
  observed.time = logged.time;
  observed.node = index;
  observed.client = client;
  observed.matches = std::span<const Match>(matches.items).first(matches.count);
  bool blocked = false;
  for (std::size_t i = 0; i < matches.count; ++i) {
    if (!node.enforces(matches.items[i].key)) continue;
    observed.enforced |= 1u << i;
    blocked = blocked || rules.by_number(matches.items[i].rule)->action == Action::kBlock;
  }
  oracle_.request(observed);
  for (const Match& hit : observed.matches) {
    const Rule& rule = *rules.by_number(hit.rule);
    if (blocked && rule.count == CountMode::kAllowed) continue;
    node.record(
        {.key = hit.key, .stamp_us = logged.time.time_since_epoch().count(), .rule = hit.rule, .cost = rule.cost});
  }
}

Report Replayer::finish() {
  events_.run_all();
  Report report = oracle_.finish();
  report.mode = "offline";
  for (const auto& node : nodes_) {
    for (const Rule& rule : matcher_.rules()->all()) {
      const LedgerRow row = node->ledger().row(rule.number);
      report.ledger.recorded += row[LedgerColumn::kDrained];
      report.ledger.delivered += row[LedgerColumn::kDelivered];
      report.ledger.dropped += row[LedgerColumn::kDropped];
      report.ledger.expired += row[LedgerColumn::kExpired];
    }
  }
  return report;
}

}  // namespace popgate
