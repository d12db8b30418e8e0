// SPDX-License-Identifier: Apache-2.0
#include "replay/oracle.h"

#include <algorithm>
#include <cmath>

#include "daemon/result.h"

namespace popgate {
namespace {

constexpr std::size_t kSweepKeysMin = 65536;

template <typename Set, typename Value>
void remember(Set& set, const Value& value) {
  if (set.size() < kClientsMax) set.insert(value);
}

double seconds_between(PopInstant from, PopInstant to) { return std::chrono::duration<double>(to - from).count(); }

double relative_error(double estimate, std::uint64_t exact) {
  return std::abs(estimate - static_cast<double>(exact)) / static_cast<double>(exact);
}

}  // namespace

Oracle::Oracle(SharedRules rules, unsigned nodes, microseconds lag)
    : rules_(std::move(rules)), nodes_(nodes), lag_(lag), ideal_(rules_), blocked_clients_by_node_(nodes) {
  POPGATE_ASSERT(nodes >= 1 && nodes <= kOracleNodesMax);
  report_.nodes = nodes;
  report_.requests_blocked_by_node.resize(nodes);
  for (const Rule& rule : rules_->all()) {
    rule_index_[rule.number] = report_.rules.size();
    RuleReport row;
    row.name = rule.name;
    row.limit = rule.limit;
    row.window_s = std::chrono::duration<double>(rule.window.window).count();
    row.mitigate_s = std::chrono::duration<double>(rule.mitigate).count();
    row.policy = policy_name(rule.policy);
    row.log_only = rule.action == Action::kLog;
    report_.rules.push_back(std::move(row));
  }
  rule_keys_.resize(report_.rules.size());
}

Oracle::State* Oracle::state_of(const Key& key, RuleNumber number) {
  const auto found = keys_.find(key);
  if (found != keys_.end()) return &found->second;
  const Rule* rule = rules_->by_number(number);
  if (rule == nullptr) return nullptr;
  return &keys_.emplace(key, State(ExactCount(rule->window.window, rule->limit), number)).first->second;
}

void Oracle::request(const ObservedRequest& request) {
  if (keys_.size() >= sweep_at_) sweep(request.time);
  ++report_.requests;
  if (!request.matches.empty()) ++report_.requests_matched;
  const auto [blocked, rightly] = judge_blocking(request);
  const bool above = record_hits(request, blocked);
  const bool ideal = ideal_.blocks(request.time, request.matches);
  if (blocked) ++report_.blocked;
  if (blocked && !rightly) ++report_.wrongly_blocked;
  if (!blocked && above) ++report_.wrongly_passed;
  if (ideal) ++report_.ideal_blocked;
  if (ideal && !blocked) ++report_.passed_but_ideal_blocks;
  if (!ideal && blocked) ++report_.blocked_but_ideal_passes;
  count_clients(request, blocked);
}

Oracle::Blocking Oracle::judge_blocking(const ObservedRequest& request) {
  Blocking outcome;
  for (std::size_t i = 0; i < request.matches.size(); ++i) {
    const Match& match = request.matches[i];
    const Rule* rule = rules_->by_number(match.rule);
    if (rule == nullptr || (request.enforced >> i & 1) == 0) continue;
    RuleReport& row = report_of(match.rule);
    const bool wrong = is_wrong_block(*state_of(match.key, match.rule), *rule, request.time);
    ++row.blocked;
    if (wrong) ++row.wrongly_blocked;
    if (rule->action != Action::kBlock) continue;
    outcome.blocked = true;
    outcome.rightly = outcome.rightly || !wrong;
  }
  return outcome;
}

// True when the request passed although it left an exact count above its limit.
bool Oracle::record_hits(const ObservedRequest& request, bool blocked) {
  bool above = false;
  for (std::size_t i = 0; i < request.matches.size(); ++i) {
    const Match& match = request.matches[i];
    const Rule* rule = rules_->by_number(match.rule);
    if (rule == nullptr || (blocked && rule->count == CountMode::kAllowed)) continue;
    State& state = *state_of(match.key, match.rule);
    state.exact.add(request.time, rule->cost);
    report_of(match.rule).hits += rule->cost;
    report_.hits += rule->cost;
    remember(keys_of(match.rule).seen, match.key);
    const bool enforced = (request.enforced >> i & 1) != 0;
    if (!blocked && !enforced && passes_above(state, match.key, *rule, request.time)) above = true;
  }
  return above;
}

// Under a false mitigation a request is wrongly blocked as long as it would have stayed within the limit had all that
// was blocked before it passed. The one that would not turns the mitigation into the one that was due by then.
bool Oracle::is_wrong_block(State& state, const Rule& rule, PopInstant now) {
  if (rule.mitigate.count() == 0) return state.exact.count(now) + rule.cost <= rule.limit;
  if (!state.unblocked) return false;
  state.unblocked->add(now, rule.cost);
  if (state.unblocked->count(now) <= rule.limit) return true;
  state.unblocked.reset();
  return false;
}

// A recorded hit that passed; true when it left the count above the limit.
bool Oracle::passes_above(State& state, const Key& key, const Rule& rule, PopInstant now) {
  const std::uint64_t count = state.exact.count(now);
  Crossing& crossing = state.crossing;
  const bool mitigation_over = !crossing.decided || now >= state.mitigated_until;
  if (count <= rule.limit) {
    if (crossing.open && mitigation_over) close(state);
    return false;
  }
  if (crossing.open && crossing.decided && mitigation_over) close(state);
  RuleReport& row = report_of(rule.number);
  if (!crossing.open) {
    crossing = Crossing(now);
    ++row.crossings;
    remember(keys_of(rule.number).over, key);
  }
  crossing.overshoot += std::min<std::uint64_t>(rule.cost, count - rule.limit);
  ++row.wrongly_passed;
  return true;
}

void Oracle::close(State& state) {
  Crossing& crossing = state.crossing;
  if (!crossing.open) return;
  RuleReport& row = report_of(state.rule);
  row.overshoot.add(static_cast<double>(crossing.overshoot));
  if (!crossing.decided) {
    ++row.missed_crossings;
  } else if (crossing.nodes_enforcing != all_nodes()) {
    ++report_.crossings_not_enforced_everywhere;
  }
  crossing = {};
}

void Oracle::judged(const Key& key, RuleNumber rule, PopInstant now, const Rate& rate) {
  State* state = state_of(key, rule);
  if (state == nullptr) return;
  const std::uint64_t exact = state->exact.count(now);
  ++report_.judgements;
  if (rate.lo > exact) ++report_.lo_above_exact;
  if (exact > 0) report_.estimate_error_at_judgements.add(relative_error(rate.estimate, exact));
}

void Oracle::decided(const ObservedDecision& decision, const Rate* rate) {
  State* state = state_of(decision.key, decision.rule);
  if (state == nullptr) return;
  RuleReport& row = report_of(decision.rule);
  // What an earlier mitigation was for is no reason for another.
  const PopInstant since = std::max(decision.at - lag_, std::min(state->mitigated_until, decision.at));
  const bool exceeded = state->exact.exceeded_since(since, decision.at);
  if (decision.at >= state->mitigated_until) {
    ++row.mitigations;
    if (!exceeded) ++row.false_mitigations;
    state->unblocked.reset();
    if (!exceeded) state->unblocked = state->exact;
    remember(keys_of(decision.rule).mitigated, decision.key);
  } else if (exceeded) {
    state->unblocked.reset();
  }
  state->mitigated_until = std::max(state->mitigated_until, decision.until);
  const std::uint64_t exact = state->exact.count(decision.at);
  if (rate != nullptr && exact > 0) {
    report_.estimate_error_at_decisions.add(relative_error(rate->estimate, exact));
  }
  Crossing& crossing = state->crossing;
  if (!crossing.open || crossing.decided) return;
  crossing.decided = true;
  report_.time_to_decision_s.add(seconds_between(crossing.at, decision.at));
}

void Oracle::enforced(unsigned node, const Key& key, PopInstant now) {
  const auto found = keys_.find(key);
  if (found == keys_.end() || node >= nodes_ || !found->second.crossing.open) return;
  Crossing& crossing = found->second.crossing;
  if (crossing.nodes_enforcing == all_nodes()) return;
  crossing.nodes_enforcing |= std::uint64_t{1} << node;
  if (crossing.nodes_enforcing == all_nodes()) {
    report_.time_to_enforced_s.add(seconds_between(crossing.at, now));
  }
}

void Oracle::seen_enforced(unsigned node, const ObservedDecision& block) {
  State* state = state_of(block.key, block.rule);
  if (state == nullptr) return;
  if (block.at >= state->mitigated_until) decided(block, nullptr);
  state->mitigated_until = std::max(state->mitigated_until, block.until);
  enforced(node, block.key, block.at);
}

void Oracle::seen_passing(const Key& key, PopInstant now, microseconds slack) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  PopInstant& until = found->second.mitigated_until;
  if (until > now && until - now <= slack) until = now;
}

void Oracle::count_clients(const ObservedRequest& request, bool blocked) {
  remember(clients_, request.client);
  if (!blocked || request.node >= nodes_) return;
  ++report_.requests_blocked_by_node[request.node];
  remember(blocked_clients_, request.client);
  remember(blocked_clients_by_node_[request.node], request.client);
}

// Amortised: the next sweep comes when as many keys have been added as were left.
void Oracle::sweep(PopInstant now) {
  for (auto it = keys_.begin(); it != keys_.end();) {
    State& state = it->second;
    const bool idle = state.mitigated_until <= now && state.exact.is_idle(now - lag_, now);
    if (idle) close(state);
    it = idle ? keys_.erase(it) : std::next(it);
  }
  sweep_at_ = std::max(kSweepKeysMin, keys_.size() * 2);
}

Report Oracle::finish() {
  for (auto& [key, state] : keys_) close(state);
  for (std::size_t i = 0; i < rule_keys_.size(); ++i) {
    report_.rules[i].keys = rule_keys_[i].seen.size();
    report_.rules[i].keys_over = rule_keys_[i].over.size();
    report_.rules[i].keys_mitigated = rule_keys_[i].mitigated.size();
  }
  report_.clients = clients_.size();
  report_.clients_blocked = blocked_clients_.size();
  for (const auto& clients : blocked_clients_by_node_) report_.clients_blocked_by_node.push_back(clients.size());
  return std::move(report_);
}

std::uint64_t Oracle::exact(const Key& key, PopInstant now) {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.exact.count(now);
}

}  // namespace popgate
