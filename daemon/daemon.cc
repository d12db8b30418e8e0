// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <unordered_set>
#include <utility>
#include <vector>

#include "daemon/admin_server.h"
#include "daemon/clock_guard.h"
#include "daemon/collect/collector.h"
#include "daemon/collect/workers.h"
#include "daemon/count/memcached_store.h"
#include "daemon/count/memory_store.h"
#include "daemon/event_loop.h"
#include "daemon/hash_secret.h"
#include "daemon/mitigate/judge_totals.h"
#include "daemon/operator_orders.h"
#include "daemon/operator_routes.h"
#include "daemon/operator_views.h"
#include "daemon/peers/mesh.h"
#include "daemon/publish/publisher.h"
#include "daemon/publish/rules_file.h"
#include "daemon/rule_numbers.h"
#include "daemon/rules_reload.h"
#include "daemon/socket_transport.h"

namespace popgate {
namespace {

constexpr milliseconds kHeartbeatPeriod{100};
constexpr milliseconds kStopPoll{10};
constexpr milliseconds kStopWait{3000};  // for replies and acknowledgements when the daemon stops
// A node without a record file must not decide before it knows the counters of its former self; when no peer can tell
// within this time, there is none that remembers.
constexpr milliseconds kFreshStartWait{5000};

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::uint64_t incarnation_now() { return static_cast<std::uint64_t>(PopClock::now().time_since_epoch().count()); }

Status make_folder(const std::string& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return Error{path + ": cannot make the folder: " + std::strerror(errno)};
}

class PopDaemon final : public Daemon {
 public:
  explicit PopDaemon(Config config) : config_(std::move(config)), incarnation_(incarnation_now()) {}

  /// Every stage in the order of the path; the first that cannot do its work ends the start.
  [[nodiscard]] Status open();
  void run() override { loop_.run(); }

 private:
  [[nodiscard]] Status open_secret();
  [[nodiscard]] Status open_rules();
  [[nodiscard]] Status open_collect();
  [[nodiscard]] Status open_count();
  void open_mitigate();
  [[nodiscard]] Status open_publish();
  void take_over();
  [[nodiscard]] Status open_peers();
  [[nodiscard]] Status open_admin();
  void start_timers();

  [[nodiscard]] Result<SharedRules> numbered(const RuleSet& rules);
  [[nodiscard]] std::unordered_set<RuleId> mitigated_rules() const;
  void apply_rules(SharedRules rules);
  [[nodiscard]] Status apply_config(const Config& wanted, const SharedRules& rules,
                                    const std::vector<std::byte>& block);
  [[nodiscard]] std::string rules_path() const { return config_.run_dir + "/rules"; }

  void flush();
  void beat();
  void look_at_clocks();
  void judge(const SlotTotals& totals, PopInstant now);
  void pass_on(const Mitigation& mitigation, const Origin& origin);
  void stop();
  void finish_stop();
  void visit(const MetricVisitor& visitor) const;

  Config config_;
  std::uint64_t incarnation_;
  PopInstant started_at_ = PopClock::now();
  EventLoop loop_;
  SocketTransport sockets_{loop_};

  // The stages, in the order of the path; they go in the reverse order.
  SharedRules rules_;
  std::unique_ptr<Ledger> ledger_;
  std::optional<RulesFile> rules_file_;
  std::unique_ptr<Publisher> publisher_;
  std::optional<Collector> collector_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<CounterStore> store_;
  MemcachedStore* memcached_ = nullptr;  // store_, when it is one
  std::optional<Mitigations> mitigations_;
  std::unique_ptr<Mesh> mesh_;
  std::optional<RulesReload> reload_;
  std::optional<OperatorViews> views_;
  std::optional<OperatorOrders> orders_;
  std::unique_ptr<AdminServer> admin_;

  ClockGuard clock_guard_{config_.clock_tolerance};
  std::vector<HitSum> sums_;
  std::optional<Timer> flush_timer_;
  std::optional<Timer> beat_timer_;
  std::optional<Timer> fresh_start_timer_;
  std::optional<Timer> stop_timer_;
  HostInstant stop_by_{};
  std::vector<std::unique_ptr<Signal>> signals_;
};

Status PopDaemon::open() {
  for (const auto& [folder, mode] : {std::pair(config_.run_dir, 0755), std::pair(config_.state_dir, 0700)}) {
    if (Status made = make_folder(folder, static_cast<mode_t>(mode)); !made) return made;
  }
  if (Status status = open_secret(); !status) return status;
  if (Status status = open_rules(); !status) return status;
  if (Status status = open_collect(); !status) return status;
  if (Status status = open_count(); !status) return status;
  open_mitigate();
  if (Status status = open_publish(); !status) return status;
  if (Status status = open_peers(); !status) return status;
  if (Status status = open_admin(); !status) return status;
  start_timers();
  spdlog::info("node {} of pop {}: {} rules, counters {}, workers at {}, admin at {}", config_.node, config_.pop,
               rules_->all().size(), config_.counters ? "in memcached" : "in this process", config_.worker_socket,
               config_.admin_socket);
  return {};
}

Status PopDaemon::open_secret() {
  if (config_.hash_secret_file) return {};
  const Result<HashSecret> secret = load_or_create_secret(config_.own_secret_file());
  if (!secret) return Error{secret.error()};
  config_.secret = *secret;
  return {};
}

Status PopDaemon::open_rules() {
  std::string note;
  Result<std::unique_ptr<Ledger>> ledger = Ledger::open(config_.run_dir + "/ledger", note);
  if (!ledger) return Error{ledger.error()};
  ledger_ = *std::move(ledger);
  if (!note.empty()) spdlog::warn("{}", note);
  Result<SharedRules> rules = numbered(config_.rules);
  if (!rules) return Error{rules.error()};
  rules_ = *std::move(rules);
  return {};
}

Status PopDaemon::open_collect() {
  collector_.emplace(Collector::Options{.seed = random_seed()}, *ledger_);
  collector_->use_rules(rules_);
  Result<std::unique_ptr<Workers>> workers =
      Workers::open(loop_,
                    {.socket_path = config_.worker_socket,
                     .socket_mode = static_cast<mode_t>(config_.worker_socket_mode),
                     .workers_max = config_.workers_max},
                    *ledger_, [this](const Hit& hit, PopInstant now) { collector_->add(hit, now); });
  if (!workers) return Error{workers.error()};
  workers_ = *std::move(workers);
  return {};
}

Status PopDaemon::open_count() {
  const auto on_totals = [this](const SlotTotals& totals, PopInstant now) { judge(totals, now); };
  if (!config_.counters) {
    store_ = std::make_unique<MemoryStore>(
        MemoryStore::Setup{.counters = std::make_shared<MemoryCounters>(config_.keys_max, random_seed()),
                           .ledger = ledger_.get(),
                           .rules = rules_,
                           .keys_max = config_.keys_max},
        on_totals);
    return {};
  }
  Result<std::unique_ptr<MemcachedStore>> store = MemcachedStore::make(*config_.counters,
                                                                       {.reactor = &loop_,
                                                                        .transport = &sockets_,
                                                                        .ledger = ledger_.get(),
                                                                        .rules = rules_,
                                                                        .flush_interval = config_.flush_interval,
                                                                        .keys_max = config_.keys_max,
                                                                        .seed = random_seed()},
                                                                       on_totals);
  if (!store) return Error{store.error()};
  memcached_ = store->get();
  store_ = *std::move(store);
  return {};
}

void PopDaemon::open_mitigate() {
  mitigations_.emplace(
      Mitigations::Options{
          .node_name = config_.node, .incarnation = incarnation_, .entries_max = config_.table_entries},
      [this](const Mitigation& mitigation, const Origin& origin) { pass_on(mitigation, origin); });
  mitigations_->use_rules(rules_, HostClock::now());
}

Status PopDaemon::open_publish() {
  std::vector<std::string> notes;
  Result<std::unique_ptr<Publisher>> publisher = Publisher::open({.run_dir = config_.run_dir,
                                                                  .state_dir = config_.state_dir,
                                                                  .table_entries = config_.table_entries,
                                                                  .incarnation = incarnation_,
                                                                  .node = config_.node},
                                                                 notes);
  for (const std::string& note : notes) spdlog::warn("{}", note);
  if (!publisher) return Error{publisher.error()};
  publisher_ = *std::move(publisher);
  Result<RulesFile> file =
      RulesFile::write(rules_path(), compile_rules(*rules_, config_.secret, config_.trusted_proxies));
  if (!file) return Error{file.error()};
  rules_file_.emplace(*std::move(file));
  take_over();
  return workers_->offer(publisher_->table_descriptor(), publisher_->table_bytes(), rules_file_->read_only_descriptor(),
                         rules_file_->bytes());
}

// What the last daemon recorded is in force again before any worker is attached.
void PopDaemon::take_over() {
  const HostInstant now = HostClock::now();
  const Restored restored = publisher_->restore([&](Mitigation entry) { mitigations_->restore(std::move(entry), now); },
                                                now, PopClock::now());
  publisher_->reconcile([&](const Key& key) { return mitigations_->enforcement(key, now); }, now);
  if (restored.found || !config_.mesh) {
    mitigations_->allow_originating(restored.counter);
  } else {
    fresh_start_timer_.emplace(loop_, [this] { mitigations_->allow_originating(0); });
    fresh_start_timer_->start_once(kFreshStartWait);
  }
}

Status PopDaemon::open_peers() {
  if (!config_.mesh) return {};
  Result<std::unique_ptr<Mesh>> mesh =
      Mesh::start(loop_, sockets_,
                  {.pop = config_.pop,
                   .node = config_.node,
                   .incarnation = incarnation_,
                   .secret_id = secret_id(config_.secret),
                   .rules_revision = rules_->revision(),
                   .listen = config_.mesh->listen,
                   .peers = config_.mesh->peers,
                   .seed = random_seed(),
                   .timings = {},
                   .on_snapshot = [this](const std::string&) { mitigations_->allow_originating(0); }},
                  *mitigations_);
  if (!mesh) return Error{mesh.error()};
  mesh_ = *std::move(mesh);
  return {};
}

Status PopDaemon::open_admin() {
  Result<std::unique_ptr<AdminServer>> server = AdminServer::open(loop_, config_.admin_socket);
  if (!server) return Error{server.error()};
  admin_ = *std::move(server);
  views_.emplace(
      Stages{config_, rules_, *ledger_, *workers_, *store_, *mitigations_, mesh_.get(), *publisher_, clock_guard_},
      started_at_);
  reload_.emplace(
      loop_, config_,
      RulesReload::Steps{
          .number = [this](const RuleSet& rules) { return numbered(rules); },
          .apply = [this](const Config& wanted, const SharedRules& rules,
                          const std::vector<std::byte>& block) { return apply_config(wanted, rules, block); }});
  orders_.emplace(OperatorOrders::Setup{*views_, *mitigations_, memcached_, *reload_});
  add_operator_routes(*admin_, *views_, *orders_, [this](const MetricVisitor& visitor) { visit(visitor); });
  return {};
}

void PopDaemon::visit(const MetricVisitor& visitor) const {
  collector_->visit(visitor);
  workers_->visit(visitor);
  store_->visit(visitor);
  mitigations_->visit(visitor);
  if (mesh_) mesh_->visit(visitor);
  publisher_->visit(visitor);
  admin_->visit(visitor);
  visitor({.name = "popgate_clock_off",
           .unit = "",
           .meaning = "1 while this node's clock is off and it therefore counts nothing into shared counters.",
           .value = clock_guard_.is_off() ? 1.0 : 0.0,
           .rises = false,
           .label_name = {},
           .label_value = {}});
}

Result<SharedRules> PopDaemon::numbered(const RuleSet& rules) {
  Result<RuleSet> set = number_rules(rules, *ledger_, [this] { return mitigated_rules(); });
  if (!set) return Error{set.error()};
  return SharedRules(std::make_shared<const RuleSet>(*std::move(set)));
}

std::unordered_set<RuleId> PopDaemon::mitigated_rules() const {
  std::unordered_set<RuleId> rules;
  if (!mitigations_) return rules;
  mitigations_->for_each({.kind = {}, .rule = {}, .ended = true},
                         [&](const Mitigation& mitigation) { rules.insert(mitigation.rule); });
  return rules;
}

// ---- The path, arrow by arrow ----

// collect -> count
void PopDaemon::flush() {
  const PopInstant now = PopClock::now();
  collector_->flush(now, sums_);
  store_->submit(sums_, now);
  store_->tick(now);
}

// count -> estimate -> mitigate
void PopDaemon::judge(const SlotTotals& totals, PopInstant now) {
  const Rule* rule = rules_->by_number(totals.rule);
  if (rule != nullptr && rule->enabled) judge_totals(totals, *rule, *mitigations_, {HostClock::now(), now});
}

// mitigate -> publish, peers. Recorded and published before a peer hears of it.
void PopDaemon::pass_on(const Mitigation& mitigation, const Origin& origin) {
  const HostInstant now = HostClock::now();
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
      if (mesh_) mesh_->broadcast(mitigation, origin);
  }
}

// ---- What runs again and again ----

void PopDaemon::start_timers() {
  flush_timer_.emplace(loop_, [this] { flush(); });
  flush_timer_->start_every(config_.flush_interval);
  beat_timer_.emplace(loop_, [this] { beat(); });
  beat_timer_->start_every(kHeartbeatPeriod);
  for (const int number : {SIGTERM, SIGINT}) {
    signals_.push_back(std::make_unique<Signal>(loop_, number, [this] { stop(); }));
  }
  signals_.push_back(
      std::make_unique<Signal>(loop_, SIGHUP, [this] { reload_->begin([](const RulesReload::Outcome&) {}); }));
}

void PopDaemon::beat() {
  const HostInstant now = HostClock::now();
  if (mesh_) look_at_clocks();
  publisher_->heartbeat(now);
  mitigations_->expire(now);
  publisher_->sweep(now);
}

// A node whose clock is off must not count into the shared slots.
void PopDaemon::look_at_clocks() {
  std::vector<ClockGuard::PeerClock> clocks;
  for (const PeerStatus& peer : mesh_->status().peers) {
    if (peer.up_to_date && peer.skew && peer.rtt) clocks.push_back({.skew = *peer.skew, .round_trip = *peer.rtt});
  }
  const bool was_off = clock_guard_.is_off();
  if (clock_guard_.look(clocks) == was_off) return;
  store_->hold_increments(!was_off);
  if (was_off) {
    spdlog::warn("this node's clock agrees with the PoP again: counting goes on");
  } else {
    spdlog::error(
        "this node's clock is {} ms ahead of the PoP's, beyond clock_tolerance: it counts nothing into the "
        "shared counters and judges its own hits alone until the clock is right",
        clock_guard_.ahead().count() / 1000);
  }
}

// ---- Rules ----

void PopDaemon::apply_rules(SharedRules rules) {
  rules_ = std::move(rules);
  collector_->use_rules(rules_);
  store_->use_rules(rules_);
  mitigations_->use_rules(rules_, HostClock::now());  // judges what is blocked again, and so publishes
  if (mesh_) mesh_->use_rules_revision(rules_->revision());
}

// The last step of a reload, and the only one that changes anything. Workers get the new rules last: by then the daemon
// knows their numbers.
Status PopDaemon::apply_config(const Config& wanted, const SharedRules& rules, const std::vector<std::byte>& block) {
  Result<RulesFile> file = RulesFile::write(rules_path(), block);
  if (!file) return Error{file.error()};
  config_.trusted_proxies = wanted.trusted_proxies;
  config_.log_level = wanted.log_level;
  config_.clock_tolerance = wanted.clock_tolerance;
  clock_guard_.use_tolerance(config_.clock_tolerance);
  spdlog::set_level(spdlog::level::from_str(config_.log_level));
  apply_rules(rules);
  rules_file_.emplace(*std::move(file));
  if (Status offered = workers_->offer_rules(rules_file_->read_only_descriptor(), rules_file_->bytes()); !offered) {
    spdlog::error("workers keep the old rules: {}", offered.error());
  }
  return {};
}

// ---- The end ----

// What workers recorded until now is counted first; then peers are told; the loop ends when replies are in.
void PopDaemon::stop() {
  if (stop_timer_) return;
  spdlog::info("stopping");
  stop_by_ = HostClock::now() + kStopWait;
  workers_->drain_all();
  workers_->stop_taking();
  flush();
  stop_timer_.emplace(loop_, [this] { finish_stop(); });
  stop_timer_->start_every(kStopPoll);
}

void PopDaemon::finish_stop() {
  const bool in_time = HostClock::now() < stop_by_;
  if (!store_->idle() && in_time) return;
  if (!in_time) spdlog::warn("stopping with counts that no shard has confirmed; the ledger has them as lost");
  if (mesh_) mesh_->stop();
  loop_.stop();
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(Config config) {
  auto daemon = std::make_unique<PopDaemon>(std::move(config));
  if (Status opened = daemon->open(); !opened) return Error{opened.error()};
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace popgate
