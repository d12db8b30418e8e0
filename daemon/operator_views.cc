// SPDX-License-Identifier: Apache-2.0
#include "daemon/operator_views.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/clock_guard.h"
#include "daemon/hash_text.h"
#include "daemon/mitigate/brakes.h"
#include "daemon/mitigate/judge_totals.h"
#include "daemon/peer_view.h"
#include "daemon/peers/mesh.h"
#include "daemon/peers/tls_transport.h"
#include "daemon/publish/publisher.h"
#include "daemon/rule_names.h"
#include "daemon/secret_views.h"
#include "popgate/popgate.h"

namespace popgate {
namespace {

using nlohmann::json;

std::int64_t whole_ms(microseconds duration) { return std::chrono::ceil<milliseconds>(duration).count(); }

json or_null(const std::optional<std::uint64_t>& value) { return value ? json(*value) : json(nullptr); }

// Hits of one rule that are not in its ledger row yet.
struct Outside {
  std::uint64_t waiting = 0;
  std::uint64_t dropped = 0;
};

json hits_of(const LedgerRow& row, const Outside& outside) {
  const std::uint64_t ring_dropped = row[LedgerColumn::kRingDropped] + outside.dropped;
  return {{"recorded", row[LedgerColumn::kDrained] + outside.waiting + ring_dropped},
          {"delivered", row[LedgerColumn::kDelivered]},
          {"uncertain", row[LedgerColumn::kUncertain]},
          {"dropped", row[LedgerColumn::kDropped] + ring_dropped},
          {"expired", row[LedgerColumn::kExpired]},
          {"lost", row[LedgerColumn::kLost]},
          {"pending", row.pending() + outside.waiting}};
}

json rate_of(const Rate& rate) { return {{"lo", rate.lo}, {"estimate", rate.estimate}, {"hi", or_null(rate.hi)}}; }

json certificate_of(const TlsTransport* tls) {
  if (tls == nullptr) return nullptr;
  const CertificateStatus certificate = tls->status();
  return {{"name", certificate.name},
          {"valid_until", time_text(certificate.valid_until)},
          {"left_ms", whole_ms(certificate.left)},
          {"alarm", certificate.alarm}};
}

RuleId decided_by_rule(const KeyEntries& entries, const Enforcement& enforcement) {
  const Mitigation* decisive = enforcement.by_operator ? entries.by_operator : entries.automatic;
  return decisive == nullptr ? kEveryRule : decisive->rule;
}

std::string_view kind_text(EntryKind kind) {
  switch (kind) {
    case EntryKind::kAutomatic:
      return "automatic";
    case EntryKind::kOperator:
      return "operator";
    case EntryKind::kLift:
      return "lift";
  }
  return "unknown";
}

std::optional<EntryKind> kind_named(std::string_view text) {
  for (const EntryKind kind : {EntryKind::kAutomatic, EntryKind::kOperator, EntryKind::kLift}) {
    if (kind_text(kind) == text) return kind;
  }
  return std::nullopt;
}

json read_ring(const RingStatus& ring) {
  json shards = json::array();
  for (const ShardStatus& shard : ring.shards) {
    shards.push_back({{"name", shard.name}, {"reachable", shard.reachable}});
  }
  return {{"ring", ring.id}, {"shards", shards}};
}

}  // namespace

std::string time_text(PopInstant instant) {
  const auto ms = std::chrono::floor<milliseconds>(instant.time_since_epoch());
  const auto s = std::chrono::floor<std::chrono::seconds>(ms);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(s.count())), (ms - s).count());
}

OperatorViews::OperatorViews(Stages stages, PopInstant started_at) : stages_(stages), started_at_(started_at) {}

json OperatorViews::rule_name(RuleId id) const {
  if (id == 0) return nullptr;
  const Rule* rule = stages_.rules->by_id(id);
  if (rule != nullptr) return rule->name;
  return stages_.rule_names.name_of(id).value_or(hash_text(id));
}

json OperatorViews::entry(const Mitigation& mitigation, HostInstant now) const {
  const EntryKind kind = kind_of(mitigation);
  const auto enforcement = stages_.mitigations.enforcement(mitigation.key, now);
  const bool by_operator = kind == EntryKind::kOperator;
  const bool wanted =
      kind != EntryKind::kLift && enforcement && mitigation.until > now && enforcement->by_operator == by_operator;
  const bool off = wanted && stages_.brakes.is_off(mitigation.rule, by_operator);
  const bool enforced = wanted && !off && stages_.publisher.holds(mitigation.key);
  const Version& version = mitigation.version;
  const Evidence& evidence = mitigation.evidence;
  return {{"key", key_text(mitigation.key)},
          {"kind", kind_text(kind)},
          {"rule", rule_name(mitigation.rule)},
          {"remaining_ms", std::max<std::int64_t>(0, whole_ms(mitigation.until - now))},
          {"until", time_text(mitigation.until_wall)},
          {"decided_by", mitigation.decided_by},
          {"decided_at", time_text(mitigation.decided_at)},
          {"reason", mitigation.reason},
          {"enforced", enforced},
          {"off", off},
          {"evidence",
           {{"lo", evidence.lo},
            {"estimate", evidence.estimate},
            {"hi", or_null(evidence.hi)},
            {"limit", evidence.limit},
            {"under", decided_under_name(evidence.under)}}},
          {"version",
           {{"epoch", version.epoch},
            {"counter", version.counter},
            {"node", hash_text(version.node)},
            {"incarnation", version.incarnation}}}};
}

std::vector<std::string> OperatorViews::not_ready() const {
  std::vector<std::string> missing;
  for (const ShardStatus& shard : stages_.store.shards()) {
    if (!shard.reachable) missing.push_back("shard " + shard.name + " does not answer");
    if (shard.reachable && shard.degraded) missing.push_back("shard " + shard.name + " is not counted on yet");
  }
  const std::vector<RingStatus> rings = stages_.store.rings();
  for (std::size_t i = 1; i < rings.size(); ++i) {
    for (const ShardStatus& shard : rings[i].shards) {
      if (!shard.reachable) missing.push_back("shard " + shard.name + " of counters.also_read does not answer");
    }
  }
  if (stages_.clock.standing() == ClockStanding::kUnjudged)
    missing.emplace_back("this node's clock was not compared with its peers' yet: it counts nothing until then");
  if (stages_.clock.is_off()) missing.emplace_back("this node's clock is off: it counts alone");
  if (stages_.mesh == nullptr) return missing;
  for (const PeerStatus& peer : stages_.mesh->status().peers) {
    if (!peer.up_to_date) missing.push_back("peer " + peer.name + " has not acknowledged everything");
    if (!peer.heard) missing.push_back("peer " + peer.name + " is not connected to this node");
    if (!peer.counts_alike.value_or(true))
      missing.push_back("peer " + peer.name + " counts under none of this node's hash secrets: a step was left out");
  }
  return missing;
}

json OperatorViews::status() const {
  json workers = json::array();
  for (const WorkerStatus& worker : stages_.workers.status()) {
    workers.push_back({{"name", worker.name},
                       {"pid", worker.pid},
                       {"uid", worker.uid},
                       {"leaving", worker.leaving},
                       {"waiting", worker.waiting},
                       {"drained", worker.figures.drained},
                       {"dropped", worker.figures.ring_dropped},
                       {"rejected", worker.figures.slots_rejected + worker.figures.positions_rejected}});
  }
  json shards = json::array();
  for (const ShardStatus& shard : stages_.store.shards()) {
    const ShardConfig& configured = stages_.config.counters->shards[shards.size()];
    shards.push_back({{"name", shard.name},
                      {"address", configured.address.text()},
                      {"reachable", shard.reachable},
                      {"degraded", shard.degraded}});
  }
  json counters{{"kind", stages_.config.counters ? "memcached" : "memory"},
                {"ring", nullptr},
                {"shards", shards},
                {"also_read", nullptr}};
  const std::vector<RingStatus> rings = stages_.store.rings();
  if (!rings.empty()) counters["ring"] = rings[0].id;
  if (rings.size() > 1) counters["also_read"] = read_ring(rings[1]);
  const std::vector<std::string> missing = not_ready();
  const Config& config = stages_.config;
  return {{"version", popgate_version()},
          {"node", config.node},
          {"pop", config.pop},
          {"pid", getpid()},
          {"started_at", time_text(started_at_)},
          {"ready", missing.empty()},
          {"not_ready", missing},
          {"secrets", secrets_of(config.secrets)},
          {"rules", {{"count", stages_.rules->all().size()}, {"revision", hash_text(stages_.rules->revision())}}},
          {"workers", workers},
          {"mitigations",
           {{"enforced", stages_.publisher.live_entries()},
            {"capacity", stages_.publisher.capacity()},
            {"no_room", stages_.publisher.not_enforced()},
            {"not_recorded", stages_.publisher.not_recorded()}}},
          {"counters", counters},
          {"mesh", mesh_summary()},
          {"enforcement", enforcement_summary()}};
}

json OperatorViews::enforcement_summary() const {
  const Brakes& brakes = stages_.brakes;
  std::set<RuleId> rules;
  for (const BrakeSide side : {BrakeSide::kNode, BrakeSide::kPop}) {
    for (const auto& [rule, brake] : brakes.registers(side)) {
      if (brake.off && rule != kEveryRule) rules.insert(rule);
    }
  }
  return {{"blocking", !brakes.is_off(kEveryRule, true)}, {"any_off", brakes.any_off()}, {"rules_off", rules.size()}};
}

json OperatorViews::mesh_summary() const {
  if (stages_.mesh == nullptr) return nullptr;
  const MeshStatus mesh = stages_.mesh->status();
  const auto connected = std::ranges::count_if(mesh.peers, [](const PeerStatus& peer) { return peer.up_to_date; });
  return {{"listen", mesh.listen},
          {"peers", mesh.peers.size()},
          {"connected", connected},
          {"coverage", mesh.coverage},
          {"certificate", certificate_of(stages_.tls)}};
}

json OperatorViews::peers() const {
  if (stages_.mesh == nullptr) return {{"coverage", 1.0}, {"peers", json::array()}};
  const MeshStatus mesh = stages_.mesh->status();
  const HostInstant now = HostClock::now();
  json listed = json::array();
  for (const PeerStatus& peer : mesh.peers) listed.push_back(peer_view(peer, now));
  return {{"listen", mesh.listen}, {"coverage", mesh.coverage}, {"peers", listed}};
}

json OperatorViews::rules(const RulesQuery& query) const {
  std::map<RuleNumber, std::uint64_t> waiting;
  std::map<RuleNumber, std::uint64_t> dropped;
  stages_.workers.add_pending(waiting, dropped);
  const auto outside = [&](RuleNumber number) { return Outside{waiting[number], dropped[number]}; };

  const HostInstant now = HostClock::now();
  std::map<RuleId, std::uint64_t> enforced;
  stages_.mitigations.for_each({.kind = EntryKind::kAutomatic, .rule = {}, .ended = false},
                               [&](const Mitigation& entry) {
                                 if (stages_.mitigations.enforcement(entry.key, now)) ++enforced[entry.rule];
                               });

  std::size_t total = 0;
  const auto is_shown = [&](std::size_t shown) { return total++ >= query.offset && shown < query.limit; };
  json listed = json::array();
  for (const Rule& rule : stages_.rules->all()) {
    if (query.rule && rule.name != *query.rule) continue;
    if (!is_shown(listed.size())) continue;
    listed.push_back({{"name", rule.name},
                      {"number", rule.number},
                      {"id", hash_text(rule.id)},
                      {"revision", hash_text(rule.revision)},
                      {"enabled", rule.enabled},
                      {"limit", rule.limit},
                      {"window_ms", whole_ms(rule.window.window)},
                      {"slots", rule.window.slots},
                      {"mitigate_ms", rule.mitigate.count()},
                      {"action", rule.action == Action::kBlock ? "block" : "log"},
                      {"count", rule.count == CountMode::kAllowed ? "allowed" : "all"},
                      {"cost", rule.cost},
                      {"policy", policy_name(rule.policy)},
                      {"on_counter_failure", on_counter_failure_name(rule.on_counter_failure)},
                      {"max_blocked_share", or_null(rule.max_blocked_share)},
                      {"enforced", enforced[rule.id]},
                      {"hits", hits_of(stages_.ledger.row(rule.number), outside(rule.number))}});
  }
  json former = json::array();
  for (const RuleNumber number : stages_.ledger.rows()) {
    const LedgerRow row = stages_.ledger.row(number);
    if (query.rule || stages_.rules->by_id(row.rule) != nullptr) continue;
    if (!is_shown(listed.size() + former.size())) continue;
    former.push_back({{"number", number},
                      {"id", hash_text(row.rule)},
                      {"name", rule_name(row.rule)},
                      {"hits", hits_of(row, outside(number))}});
  }
  return {{"revision", hash_text(stages_.rules->revision())},
          {"total", total},
          {"rules", listed},
          {"former_rules", former}};
}

Result<json> OperatorViews::mitigations(const MitigationsQuery& query) const {
  Mitigations::Filter filter;
  if (query.kind) {
    filter.kind = kind_named(*query.kind);
    if (!filter.kind) return Error{"kind: found \"" + *query.kind + "\", allowed: automatic, operator, lift"};
  }
  if (query.rule) filter.rule = rule_id(*query.rule);
  Key key;
  if (query.key && !parse_key_text(*query.key, key)) {
    return Error{"key: found \"" + *query.key + "\", allowed: 32 hexadecimal digits"};
  }
  const HostInstant now = HostClock::now();
  std::size_t total = 0;
  json shown = json::array();
  stages_.mitigations.for_each(filter, [&](const Mitigation& mitigation) {
    if (query.key && mitigation.key != key) return;
    if (query.by && mitigation.decided_by != *query.by) return;
    const std::size_t place = total++;
    if (place >= query.offset && shown.size() < query.limit) shown.push_back(entry(mitigation, now));
  });
  return json{{"total", total}, {"enforcement", enforcement_summary()}, {"mitigations", shown}};
}

Result<NamedKey> OperatorViews::named_key(const KeyName& name) const {
  NamedKey named;
  if (name.key) {
    if (name.rule) return Error{"found both key and rule, allowed: one of them"};
    if (!parse_key_text(*name.key, named.key)) {
      return Error{"key: found \"" + *name.key + "\", allowed: 32 hexadecimal digits"};
    }
    const KeyEntries entries = stages_.mitigations.find(named.key);
    for (const Mitigation* held : {entries.automatic, entries.by_operator}) {
      if (held != nullptr && named.rule == nullptr) named.rule = stages_.rules->by_id(held->rule);
    }
    return named;
  }
  if (!name.rule) return Error{"found neither key nor rule, allowed: one of them"};
  named.rule = stages_.rules->by_name(*name.rule);
  if (named.rule == nullptr)
    return Error{"rule: found \"" + *name.rule + "\", allowed: the name of a rule of this node"};
  std::string reason;
  named.by_identity = true;
  const HashSecrets& secrets = stages_.config.secrets;
  if (!key_of_values(*named.rule, secrets.first, name.values, named.key, reason)) return Error{reason};
  if (secrets.use == SecondSecret::kNone) return named;
  const bool same_values = key_of_values(*named.rule, secrets.second, name.values, named.second.emplace(), reason);
  POPGATE_ASSERT(same_values);
  return named;
}

std::optional<std::string> OperatorViews::peer_with_more_secrets() const {
  if (stages_.mesh == nullptr) return std::nullopt;
  return popgate::peer_with_more_secrets(stages_.config.secrets, stages_.mesh->status().peers);
}

json OperatorViews::slots_and_rate(const Key& key, const Rule& rule) const {
  const std::vector<SlotCount> counts = stages_.store.slots_of(key);
  const KeySlots slots(rule.window, key);
  json listed = json::array();
  for (const SlotCount& count : counts) {
    listed.push_back({{"slot", count.slot},
                      {"from", time_text(slots.start(count.slot))},
                      {"to", time_text(slots.end(count.slot))},
                      {"known", count.known},
                      {"unsent", count.unsent},
                      {"hidden", count.hidden}});
  }
  const PopInstant now = PopClock::now();
  const bool degraded = stages_.store.is_degraded(key);
  const SlotTotals totals{.key = key,
                          .rule = rule.number,
                          .slots = counts,
                          .fresh = !counts.empty(),  // the bracket is of what was last read, if anything was
                          .counters_lost = stages_.store.counters_lost(key, now),
                          .degraded = degraded,
                          .peers = stages_.store.peer_doubt(key)};
  const Rate rate = estimate_rate(totals, slots, now, lifted_through(stages_.mitigations, slots, key));
  return {{"slots", listed},
          {"rate", rate_of(rate)},
          {"degraded", degraded},
          {"on_counter_failure", on_counter_failure_name(rule.on_counter_failure)},
          {"limit", rule.limit},
          {"policy", policy_name(rule.policy)},
          {"window_ms", whole_ms(rule.window.window)}};
}

json OperatorViews::explained(const Key& key, const Rule* rule, HostInstant now) const {
  json answer = {{"key", key_text(key)},          {"enforced", nullptr}, {"entries", json::array()},
                 {"slots", json::array()},        {"rate", nullptr},     {"degraded", nullptr},
                 {"on_counter_failure", nullptr}, {"limit", nullptr},    {"policy", nullptr},
                 {"window_ms", nullptr}};
  const KeyEntries entries = stages_.mitigations.find(key);
  if (const auto enforcement = stages_.mitigations.enforcement(key, now)) {
    const microseconds remaining = enforcement->until - now;
    answer["enforced"] = {
        {"until", time_text(PopClock::now() + remaining)},
        {"remaining_ms", whole_ms(remaining)},
        {"log_only", enforcement->log_only},
        {"off", stages_.brakes.is_off(decided_by_rule(entries, *enforcement), enforcement->by_operator)},
        {"no_room", !stages_.publisher.holds(key)},
        {"by_operator", enforcement->by_operator}};
  }
  for (const Mitigation* held : {entries.automatic, entries.by_operator, entries.lift}) {
    if (held != nullptr) answer["entries"].push_back(entry(*held, now));
  }
  if (rule != nullptr) answer.update(slots_and_rate(key, *rule));
  return answer;
}

Result<json> OperatorViews::explain(const KeyName& name) const {
  const Result<NamedKey> named = named_key(name);
  if (!named) return Error{named.error()};
  const HostInstant now = HostClock::now();
  json answer = explained(named->key, named->rule, now);
  answer["node"] = stages_.config.node;
  answer["rule"] = named->rule != nullptr ? json(named->rule->name) : json(nullptr);
  answer["second"] = named->second ? explained(*named->second, named->rule, now) : json(nullptr);
  return answer;
}

}  // namespace popgate
