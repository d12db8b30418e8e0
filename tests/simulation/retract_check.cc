// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/retract_check.h"

#include <algorithm>

namespace popgate::simulation {
namespace {

// All that decides what an entry means, as a person would compare two texts of a rule.
bool same_content(const Rule& a, const Rule& b) {
  return a.limit == b.limit && a.window == b.window && a.mitigate == b.mitigate && a.policy == b.policy &&
         a.cost == b.cost && a.count == b.count && a.action == b.action && a.enabled == b.enabled &&
         a.on_counter_failure == b.on_counter_failure && a.max_blocked_share == b.max_blocked_share;
}

double deciding(const Rule& rule, const Evidence& evidence) {
  if (rule.mitigate.count() == 0 || rule.policy == Policy::kEstimate) return evidence.estimate;
  if (rule.policy == Policy::kCertain) return static_cast<double>(evidence.lo);
  return evidence.hi ? static_cast<double>(*evidence.hi) : evidence.estimate;
}

bool blocks(const TableAnswer& answer) {
  return answer.live && (answer.flags & (kTableFlagLogOnly | kTableFlagOperator)) == 0;
}

bool same_slots(const std::vector<SlotCount>& a, const std::vector<SlotCount>& b) {
  return std::ranges::equal(a, b, [](const SlotCount& one, const SlotCount& other) {
    return one.slot == other.slot && one.known == other.known && one.unsent == other.unsent &&
           one.hidden == other.hidden;
  });
}

}  // namespace

void RetractCheck::broken(Node& node, const std::string& promise, const Mitigation& entry, const std::string& how) {
  pop_.broken(promise, "on " + node.name() + " the entry of key " + key_text(entry.key) + " with counter " +
                           std::to_string(entry.version.counter) + " " + how);
}

void RetractCheck::turn(Node& node) {
  Seen& seen = seen_[node.host()];
  const bool changed = seen.digest != node.pipeline().mitigations().digest() || seen.rules != node.pipeline().rules();
  if (++seen.turns % kTurnsBetweenLooks != 0 && !changed) return;
  look(node, seen);
}

void RetractCheck::look(Node& node, Seen& seen) {
  seen.digest = node.pipeline().mitigations().digest();
  seen.rules = node.pipeline().rules();
  node.pipeline().mitigations().for_each({.kind = EntryKind::kAutomatic, .rule = {}}, [&](const Mitigation& entry) {
    remember_decision(node, entry);
    if (entry.until > node.machine().host_now()) look_at(node, seen, entry);
  });
}

// Its decider has the rule still: a reload is a turn of its own.
void RetractCheck::remember_decision(Node& node, const Mitigation& entry) {
  if (entry.version.node != node.pipeline().mitigations().node() || decided_under_.contains(entry.version)) return;
  const Rule* const rule = node.pipeline().rules()->by_id(entry.rule);
  if (rule != nullptr) decided_under_.emplace(entry.version, *rule);
}

void RetractCheck::look_at(Node& node, Seen& seen, const Mitigation& entry) {
  const TableAnswer answer = node.look_up(entry.key);
  const Rule* const rule = node.pipeline().rules()->by_id(entry.rule);
  const auto end = rule != nullptr && rule->enabled ? end_under(*rule, entry) : std::nullopt;
  const bool ended = !end || *end <= node.machine().host_now();
  const bool by_operator = answer.live && (answer.flags & kTableFlagOperator) != 0;
  const bool ended_for_workers = !end || *end + kTableStep <= node.machine().host_now();
  if (ended_for_workers && answer.live && !by_operator) {
    return broken(node, "7", entry, "is told to workers although the rules of now would not have made it");
  }
  if (ended || by_operator) {
    seen.told.erase(entry.key);
    return;
  }
  const auto told = seen.told.find(entry.key);
  if (!answer.live && told != seen.told.end() && told->second == entry.version &&
      *end > node.machine().host_now() + kTableStep) {
    return broken(node, "9", entry, "was told to workers, has not ended, and is told no more");
  }
  if (!answer.live) return;  // it found no room yet
  seen.told[entry.key] = entry.version;
  look_at_end(node, entry, *rule, answer);
  if (rule->action == Action::kLog && blocks(answer)) broken(node, "7", entry, "blocks under `action: log`");
}

void RetractCheck::look_at_end(Node& node, const Mitigation& entry, const Rule& rule, const TableAnswer& answer) {
  const HostInstant end = *end_under(rule, entry);
  const microseconds longer = node.machine().host_now() + answer.remaining - end;
  if (longer <= kTableStep) return;
  broken(node, "7", entry,
         "is told to workers for " + std::to_string(longer.count()) + " us longer than the rules of now allow");
}

std::optional<HostInstant> RetractCheck::end_under(const Rule& rule, const Mitigation& entry) {
  const auto decided = decided_under_.find(entry.version);
  const bool unknown = decided == decided_under_.end();  // decided and replaced within a turn
  const bool as_decided = unknown ? rule.revision == entry.rule_revision : same_content(decided->second, rule);
  if (as_decided) return entry.until;
  ++judged_again_;
  if (deciding(rule, entry.evidence) <= static_cast<double>(rule.limit)) {
    ++retracted_;
    return std::nullopt;
  }
  const microseconds granted = std::max<microseconds>(entry.until_wall - entry.decided_at, microseconds(0));
  const microseconds lasts = rule.mitigate.count() > 0 ? microseconds(rule.mitigate) : rule.window.window;
  return std::min(entry.until, entry.until - granted + lasts);
}

// ---- Counters ----

void RetractCheck::reload(Node& node, Node::Reload reload) {
  if (reload == Node::Reload::kBegins) {
    before_[node.host()] = counters_of(node);
    return;
  }
  compare(node, before_.at(node.host()));
}

RetractCheck::Before RetractCheck::counters_of(Node& node) const {
  Before before{.rules = node.pipeline().rules(), .counters = {}};
  for (const Traffic::Client& client : traffic_.clients()) {
    const Rule* const rule = before.rules->by_id(traffic_.rule_of(client).id);
    if (rule == nullptr) continue;
    const Key key = Traffic::key_of(client, *rule);
    before.counters[key] = {node.pipeline().store().slots_of(key), node.pipeline().ledger().row(rule->number)};
  }
  return before;
}

void RetractCheck::compare(Node& node, const Before& before) {
  const Before after = counters_of(node);
  for (const Traffic::Client& client : traffic_.clients()) {
    const RuleId id = traffic_.rule_of(client).id;
    const Rule* const old_rule = before.rules->by_id(id);
    const Rule* const new_rule = after.rules->by_id(id);
    const bool kept = old_rule != nullptr && new_rule != nullptr && old_rule->window == new_rule->window &&
                      old_rule->enabled && new_rule->enabled;
    if (!kept) continue;
    // The same key, or counters would not be the client's any more.
    const auto old_counters = before.counters.find(Traffic::key_of(client, *old_rule));
    const auto new_counters = after.counters.find(Traffic::key_of(client, *old_rule));
    const bool same = new_counters != after.counters.end() &&
                      same_slots(old_counters->second.slots, new_counters->second.slots) &&
                      std::ranges::equal(old_counters->second.row.columns, new_counters->second.row.columns);
    if (same) continue;
    return pop_.broken("7", "on " + node.name() + " a change of rules that left the counters of " + new_rule->name +
                                " as they were lost or changed what was counted for key " +
                                key_text(Traffic::key_of(client, *old_rule)));
  }
}

}  // namespace popgate::simulation
