// SPDX-License-Identifier: Apache-2.0
#include "daemon/pipeline.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/count/memory_store.h"
#include "daemon/hash_secret.h"
#include "daemon/mitigate/judge_totals.h"
#include "daemon/rule_numbers.h"

namespace popgate {
namespace {

constexpr milliseconds kHeartbeatPeriod{100};
constexpr milliseconds kHeardWithin{1000};  // four heartbeats of the mesh
// A node without a record file must not decide before it knows the counters of its former self; when no peer can tell
// within this time, there is none that remembers.
constexpr milliseconds kFreshStartWait{5000};

std::size_t members_of(const Config& config) { return config.mesh ? config.mesh->peers.size() + 1 : 1; }

}  // namespace

Result<std::unique_ptr<Pipeline>> Pipeline::open(const Config& config, Setup setup) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(config, std::move(setup)));
  if (Status status = pipeline->open_rules(); !status) return Error{status.error()};
  if (Status status = pipeline->open_count(); !status) return Error{status.error()};
  pipeline->open_mitigate();
  if (Status status = pipeline->open_publish(); !status) return Error{status.error()};
  return pipeline;
}

Pipeline::Pipeline(const Config& config, Setup setup)
    : config_(config),
      setup_(std::move(setup)),
      seeds_(setup_.seed),
      incarnation_(static_cast<std::uint64_t>(setup_.reactor.wall_now().time_since_epoch().count())),
      rule_names_(config.state_dir.empty() ? "" : config.state_dir + "/rule-names"),
      clock_guard_({.tolerance = config.clock_tolerance, .members = members_of(config)}),
      flush_timer_(setup_.reactor, [this] { flush(); }),
      beat_timer_(setup_.reactor, [this] { beat(); }),
      fresh_start_timer_(setup_.reactor, [this] { mitigations_->allow_originating(0); }),
      fuse_timer_(setup_.reactor, [this] { judge_fuses(); }) {}

Status Pipeline::open_rules() {
  std::string note;
  Result<std::unique_ptr<Ledger>> ledger = Ledger::open(config_.run_dir + "/ledger", note);
  if (!ledger) return Error{ledger.error()};
  ledger_ = *std::move(ledger);
  if (!note.empty()) spdlog::warn("{}", note);
  Result<SharedRules> rules = numbered(config_.rules);
  if (!rules) return Error{rules.error()};
  rules_ = *std::move(rules);
  learn_names();
  collector_.emplace(Collector::Options{.seed = seeds_()}, *ledger_);
  collector_->use_rules(rules_);
  return {};
}

Status Pipeline::open_count() {
  const auto on_totals = [this](const SlotTotals& totals, PopInstant now) { judge(totals, now); };
  if (!config_.counters) {
    store_ = std::make_unique<MemoryStore>(
        MemoryStore::Setup{.counters = std::make_shared<MemoryCounters>(config_.keys_max, seeds_()),
                           .ledger = ledger_.get(),
                           .rules = rules_,
                           .keys_max = config_.keys_max},
        on_totals);
    return {};
  }
  Result<std::unique_ptr<MemcachedStore>> store = MemcachedStore::make(*config_.counters,
                                                                       {.reactor = &setup_.reactor,
                                                                        .transport = &setup_.to_shards,
                                                                        .ledger = ledger_.get(),
                                                                        .rules = rules_,
                                                                        .flush_interval = config_.flush_interval,
                                                                        .keys_max = config_.keys_max,
                                                                        .seed = seeds_()},
                                                                       on_totals);
  if (!store) return Error{store.error()};
  memcached_ = store->get();
  store_ = *std::move(store);
  return {};
}

void Pipeline::open_mitigate() {
  mitigations_.emplace(
      Mitigations::Options{
          .node_name = config_.node, .incarnation = incarnation_, .entries_max = config_.table_entries},
      [this](const Mitigation& mitigation, const Origin& origin) { pass_on(mitigation, origin); });
  mitigations_->use_rules(rules_, setup_.reactor.host_now());
  closed_keys_.emplace(*mitigations_, [this](const Key& key) { return store_->is_degraded(key); });
}

Status Pipeline::open_publish() {
  std::vector<std::string> notes;
  Result<std::unique_ptr<Publisher>> publisher = Publisher::open({.run_dir = config_.run_dir,
                                                                  .state_dir = config_.state_dir,
                                                                  .table_entries = config_.table_entries,
                                                                  .incarnation = incarnation_,
                                                                  .node = config_.node,
                                                                  .loop = setup_.loop},
                                                                 notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (!publisher) return Error{publisher.error()};
  publisher_ = *std::move(publisher);
  take_over();
  return {};
}

// What the last daemon recorded is in force again before any worker is attached.
void Pipeline::take_over() {
  const HostInstant now = setup_.reactor.host_now();
  const Restored restored = publisher_->restore(
      [this](Mitigation entry) { mitigations_->restore(std::move(entry), setup_.reactor.host_now()); }, now,
      setup_.reactor.wall_now());
  brakes_ = std::make_unique<BrakeControl>(
      BrakeControl::Setup{config_.node, setup_.reactor, rules_, rule_names_, *ledger_, *mitigations_, *publisher_,
                          [this](RuleId rule) { fuses_->reset(rule); }, config_.mesh && !config_.mesh->peers.empty()});
  fuses_ = std::make_unique<FuseControl>(FuseControl::Setup{setup_.reactor, rules_, *brakes_});
  brakes_->restore();
  publisher_->reconcile([this](const Key& key) { return mitigations_->enforcement(key, setup_.reactor.host_now()); },
                        now);
  if (restored.found || !config_.mesh) {
    mitigations_->allow_originating(restored.counter);
  } else {
    fresh_start_timer_.start_once(kFreshStartWait);
  }
}

Status Pipeline::start() {
  if (Status joined = join_mesh(); !joined) return joined;
  flush_timer_.start_every(config_.flush_interval);
  beat_timer_.start_every(kHeartbeatPeriod);
  fuse_timer_.start_every(kFuseSampleEvery);
  return {};
}

Status Pipeline::join_mesh() {
  if (!config_.mesh) return {};
  Result<std::unique_ptr<Mesh>> mesh = Mesh::start(setup_.reactor, setup_.to_peers,
                                                   {.pop = config_.pop,
                                                    .node = config_.node,
                                                    .incarnation = incarnation_,
                                                    .secret_id = secret_id(config_.secrets.first),
                                                    .second_secret = second_secret_name(config_.secrets),
                                                    .rules_revision = rules_->revision(),
                                                    .listen = config_.mesh->listen,
                                                    .peers = config_.mesh->peers,
                                                    .seed = seeds_(),
                                                    .output_bytes_max = setup_.mesh_output_bytes_max,
                                                    .timings = {},
                                                    .brakes = &brakes_->brakes(),
                                                    .figures = [this] { return figures(); },
                                                    .on_snapshot = [this](const std::string&) { learn_from_peer(); },
                                                    .count_lag = [this] { return store_->lag(); }},
                                                   *mitigations_);
  if (!mesh) return Error{mesh.error()};
  mesh_ = *std::move(mesh);
  brakes_->use_mesh(mesh_.get());
  clock_watch_.emplace(
      ClockWatch::Setup{.reactor = setup_.reactor, .store = *store_, .guard = clock_guard_, .hand_over = [this] {
                          hand_over(setup_.reactor.wall_now());
                        }});
  const MeshStatus nobody_heard = mesh_->status();
  clock_watch_->look(nobody_heard);
  look_at_lags(nobody_heard);
  fuses_->use_mesh(mesh_.get());
  return {};
}

// A peer has sent all that it knows.
void Pipeline::learn_from_peer() {
  mitigations_->allow_originating(0);
  brakes_->heard_peer();
}

wire::NodeFigures Pipeline::figures() const {
  wire::NodeFigures figures{.brakes_digest = brakes_->brakes().digest(),
                            .not_enforced = publisher_->not_enforced(),
                            .requests = 0,
                            .rules = {}};
  fuses_->describe(figures);
  return figures;
}

void Pipeline::judge_fuses() {
  if (!requests_) return;
  fuses_->take(requests_());
  fuses_->tick();
}

void Pipeline::say_goodbye() {
  if (mesh_) mesh_->stop();
}

void Pipeline::visit(const MetricVisitor& visitor) const {
  collector_->visit(visitor);
  store_->visit(visitor);
  mitigations_->visit(visitor);
  brakes_->visit(visitor);
  fuses_->visit(visitor);
  if (mesh_) mesh_->visit(visitor);
  publisher_->visit(visitor);
  visit_standing(clock_guard_.standing(), visitor);
}

Result<SharedRules> Pipeline::numbered(const RuleSet& rules) {
  Result<RuleSet> set = number_rules(rules, *ledger_, [this] { return mitigated_rules(); });
  if (!set) return Error{set.error()};
  return SharedRules(std::make_shared<const RuleSet>(*std::move(set)));
}

std::unordered_set<RuleId> Pipeline::mitigated_rules() const {
  std::unordered_set<RuleId> rules;
  if (!mitigations_) return rules;
  mitigations_->for_each({.kind = {}, .rule = {}, .ended = true},
                         [&](const Mitigation& mitigation) { rules.insert(mitigation.rule); });
  return rules;
}

void Pipeline::learn_names() {
  if (const Status learnt = rule_names_.learn(*rules_); !learnt) {
    spdlog::warn("{}; rules that are deleted will be shown by their ids", learnt.error());
  }
}

// ---- The path, arrow by arrow ----

// collect -> count
void Pipeline::flush() {
  if (clock_watch_ && clock_watch_->is_outdated()) clock_watch_->look(mesh_->status());
  const PopInstant now = setup_.reactor.wall_now();
  hand_over(now);
  store_->tick(now);
}

void Pipeline::hand_over(PopInstant now) {
  collector_->flush(now, sums_);
  store_->submit(sums_, now);
}

void Pipeline::finish() {
  flush();
  if (clock_watch_) clock_watch_->wait_no_more();
}

// count -> estimate -> mitigate
void Pipeline::judge(const SlotTotals& totals, PopInstant now) {
  const Rule* rule = rules_->by_number(totals.rule);
  if (rule == nullptr || !rule->enabled) return;
  const auto members = static_cast<std::uint32_t>(members_of(config_));
  SlotTotals told = totals;
  if (clock_watch_ && clock_watch_->is_outdated()) {
    told.clock_in_doubt = true;
    told.fresh = false;  // what was read were slots of another window
  }
  const JudgedTotals judged = judge_totals(told, *rule, *mitigations_, {setup_.reactor.host_now(), now}, members);
  if (judged.under != DecidedUnder::kCounters) tell_degraded(*rule, totals.key, judged);
  if (setup_.on_judged) setup_.on_judged(told, judged, now);
}

void Pipeline::tell_degraded(const Rule& rule, const Key& key, const JudgedTotals& judged) {
  const bool decided = judged.outcome == DecideOutcome::kDecided || judged.outcome == DecideOutcome::kRenewed;
  if (!decided || !degraded_log_.allow(setup_.reactor.host_now())) return;
  spdlog::warn(
      "rule {}: key {} is mitigated without counters ({}), because its shard cannot be counted on ({} such lines "
      "withheld before)",
      rule.name, key_text(key), decided_under_name(judged.under), degraded_log_.take_withheld());
}

// mitigate -> publish, peers. Recorded and published before a peer hears of it.
void Pipeline::pass_on(const Mitigation& mitigation, const Origin& origin) {
  const HostInstant now = setup_.reactor.host_now();
  const std::optional<Enforcement> enforcement = mitigations_->enforcement(mitigation.key, now);
  switch (origin.kind) {
    case Origin::Kind::kRestored:  // take_over() reconciles when all are back
      break;
    case Origin::Kind::kEnded:
    case Origin::Kind::kRules:
      publisher_->enforce(mitigation.key, enforcement, now);
      break;
    case Origin::Kind::kLocal:
    case Origin::Kind::kPeer:
      publisher_->publish(mitigation, enforcement, now);
      if (origin.kind == Origin::Kind::kLocal) closed_keys_->decided(mitigation);
      if (mesh_) mesh_->broadcast(mitigation, origin);
  }
}

void Pipeline::beat() {
  const HostInstant now = setup_.reactor.host_now();
  if (mesh_) {
    const MeshStatus mesh = mesh_->status();
    clock_watch_->look(mesh);
    look_at_lags(mesh);
  }
  publisher_->heartbeat(now);
  closed_keys_->renew(*rules_, {now, setup_.reactor.wall_now()});
  mitigations_->expire(now);
  publisher_->sweep(now);
  brakes_->tick();
}

// Upper bounds hold only as far as it is known what the peers have not counted yet.
void Pipeline::look_at_lags(const MeshStatus& mesh) {
  const HostInstant now = setup_.reactor.host_now();
  std::vector<PeerLag> lags;
  for (const PeerStatus& peer : mesh.peers) {
    const bool heard = peer.heard && peer.last_heard && now - *peer.last_heard < kHeardWithin;
    lags.push_back({.node = peer.name, .heard = heard, .said_goodbye = peer.said_goodbye, .lag = peer.count_lag});
  }
  store_->use_peer_lags(lags, setup_.reactor.wall_now());
}

void Pipeline::use_rules(SharedRules rules) {
  const SharedRules before = std::exchange(rules_, std::move(rules));
  collector_->use_rules(rules_);
  store_->use_rules(rules_);
  learn_names();
  // Judges what is blocked again, and so publishes.
  brakes_->use_rules(*before, [this] { mitigations_->use_rules(rules_, setup_.reactor.host_now()); });
  if (mesh_) mesh_->use_rules_revision(rules_->revision());
}

}  // namespace popgate
