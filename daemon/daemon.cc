// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "daemon/admin_server.h"
#include "daemon/collect/workers.h"
#include "daemon/event_loop.h"
#include "daemon/hash_secret.h"
#include "daemon/operator_brakes.h"
#include "daemon/operator_orders.h"
#include "daemon/operator_routes.h"
#include "daemon/operator_views.h"
#include "daemon/peers/tls_transport.h"
#include "daemon/pipeline.h"
#include "daemon/publish/rules_file.h"
#include "daemon/rules_reload.h"
#include "daemon/socket_transport.h"

namespace popgate {
namespace {

constexpr milliseconds kStopPoll{10};
constexpr milliseconds kStopWait{3000};  // for replies and acknowledgements when the daemon stops
static_assert(kStopWait > ClockGuard::kJudgedWithin + kStopWait / 4, "hits that wait for the clock would be lost");

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Result<std::optional<gid_t>> socket_group(const char* option, const std::optional<std::string>& group) {
  if (!group) return std::optional<gid_t>();
  const Result<gid_t> number = group_number(*group);
  if (!number) return Error{std::string(option) + ": " + number.error()};
  return std::optional<gid_t>(*number);
}

Status make_folder(const std::string& path, mode_t mode) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return Error{path + ": cannot make the folder: " + std::strerror(errno)};
}

class PopDaemon final : public Daemon {
 public:
  explicit PopDaemon(Config config) : config_(std::move(config)) {}

  /// The first step that cannot do its work ends the start.
  [[nodiscard]] Status open();
  void run() override { loop_.run(); }

 private:
  [[nodiscard]] Status open_secret();
  [[nodiscard]] Status open_tls();
  [[nodiscard]] Status open_pipeline();
  [[nodiscard]] Status open_workers();
  [[nodiscard]] Status open_admin();
  void watch_signals();

  [[nodiscard]] Status apply_config(const Config& wanted, const SharedRules& rules,
                                    const std::vector<std::byte>& block);
  [[nodiscard]] Result<RulesFile> write_rules(const std::vector<std::byte>& block) const;

  void stop();
  void finish_stop();
  void visit(const MetricVisitor& visitor) const;

  Config config_;
  PopInstant started_at_ = PopClock::now();
  EventLoop loop_;
  SocketTransport sockets_{loop_};
  std::unique_ptr<TlsTransport> tls_;  // null: the mesh is plain, on loopback

  std::unique_ptr<Pipeline> pipeline_;
  std::optional<RulesFile> rules_file_;
  std::unique_ptr<Workers> workers_;
  std::optional<RulesReload> reload_;
  std::optional<OperatorViews> views_;
  std::optional<OperatorOrders> orders_;
  std::optional<OperatorBrakes> operator_brakes_;
  std::unique_ptr<AdminServer> admin_;

  std::optional<Timer> stop_timer_;
  HostInstant stop_by_{};
  std::vector<std::unique_ptr<Signal>> signals_;
};

Status PopDaemon::open() {
  for (const auto& [folder, mode] : {std::pair(config_.run_dir, 0755), std::pair(config_.state_dir, 0700)}) {
    if (Status made = make_folder(folder, static_cast<mode_t>(mode)); !made) return made;
  }
  if (::access(config_.run_dir.c_str(), W_OK) != 0) {
    return Error{config_.run_dir + ": run_dir cannot be written: " + std::strerror(errno) +
                 "; it holds the table, the ledger and the sockets"};
  }
  if (Status status = open_secret(); !status) return status;
  if (Status status = open_tls(); !status) return status;
  if (Status status = open_pipeline(); !status) return status;
  if (Status status = open_workers(); !status) return status;
  if (Status status = pipeline_->start(); !status) return status;
  if (Status status = open_admin(); !status) return status;
  watch_signals();
  spdlog::info("node {} of pop {}: {} rules, counters {}, workers at {}, admin at {}", config_.node, config_.pop,
               pipeline_->rules()->all().size(), config_.counters ? "in memcached" : "in this process",
               config_.worker_socket, config_.admin_socket);
  return {};
}

Status PopDaemon::open_secret() {
  if (config_.hash_secret_file) return {};
  const Result<HashSecret> secret = load_or_create_secret(config_.own_secret_file());
  if (!secret) return Error{secret.error()};
  config_.secrets = *secret;
  return {};
}

Status PopDaemon::open_tls() {
  if (!config_.mesh || !config_.mesh->tls) return {};
  auto transport = TlsTransport::make(loop_, loop_, config_.mesh->tls->credentials);
  if (!transport) return Error{transport.error()};
  tls_ = *std::move(transport);
  return {};
}

Status PopDaemon::open_pipeline() {
  Transport& to_peers = tls_ != nullptr ? static_cast<Transport&>(*tls_) : sockets_;
  Result<std::unique_ptr<Pipeline>> pipeline = Pipeline::open(config_, {.reactor = loop_,
                                                                        .to_shards = sockets_,
                                                                        .to_peers = to_peers,
                                                                        .seed = random_seed(),
                                                                        .on_judged = nullptr,
                                                                        .loop = &loop_});
  if (!pipeline) return Error{pipeline.error()};
  pipeline_ = *std::move(pipeline);
  return {};
}

// Workers are offered rules and table once what the last daemon recorded is in force again.
Status PopDaemon::open_workers() {
  const Result<std::optional<gid_t>> group = socket_group("worker_socket_group", config_.worker_socket_group);
  if (!group) return Error{group.error()};
  Result<std::unique_ptr<Workers>> workers =
      Workers::open(loop_,
                    {.socket_path = config_.worker_socket,
                     .socket_mode = static_cast<mode_t>(config_.worker_socket_mode),
                     .socket_group = *group,
                     .workers_max = config_.workers_max},
                    pipeline_->ledger(), [this](const Hit& hit, PopInstant now) { pipeline_->add(hit, now); });
  if (!workers) return Error{workers.error()};
  workers_ = *std::move(workers);
  pipeline_->watch_requests([this]() -> const RequestTotals& { return workers_->requests(); });
  Result<RulesFile> file = write_rules(compile_rules(*pipeline_->rules(), config_.secrets, config_.trusted_proxies));
  if (!file) return Error{file.error()};
  rules_file_.emplace(*std::move(file));
  const Publisher& publisher = pipeline_->publisher();
  return workers_->offer(publisher.table_descriptor(), publisher.table_bytes(), rules_file_->read_only_descriptor(),
                         rules_file_->bytes());
}

Result<RulesFile> PopDaemon::write_rules(const std::vector<std::byte>& block) const {
  std::string note;
  Result<RulesFile> file = RulesFile::write(config_.run_dir + "/rules", block, note);
  if (file && !note.empty()) spdlog::warn("{}", note);
  return file;
}

Status PopDaemon::open_admin() {
  const Result<std::optional<gid_t>> group = socket_group("admin_socket_group", config_.admin_socket_group);
  if (!group) return Error{group.error()};
  AdminServer::Limits limits;
  limits.access = {static_cast<mode_t>(*group ? 0660 : 0600), *group};
  Result<std::unique_ptr<AdminServer>> server = AdminServer::open(loop_, config_.admin_socket, limits);
  if (!server) return Error{server.error()};
  admin_ = *std::move(server);
  views_.emplace(Stages{config_, pipeline_->rules(), pipeline_->ledger(), *workers_, pipeline_->store(),
                        pipeline_->mitigations(), pipeline_->mesh(), pipeline_->publisher(), pipeline_->clock_guard(),
                        tls_.get(), pipeline_->brakes().brakes(), pipeline_->rule_names()},
                 started_at_);
  reload_.emplace(
      loop_, config_,
      RulesReload::Steps{
          .number = [this](const RuleSet& rules) { return pipeline_->numbered(rules); },
          .apply = [this](const Config& wanted, const SharedRules& rules,
                          const std::vector<std::byte>& block) { return apply_config(wanted, rules, block); }});
  orders_.emplace(OperatorOrders::Setup{*views_, pipeline_->mitigations(), pipeline_->publisher(),
                                        pipeline_->memcached(), *reload_});
  operator_brakes_.emplace(loop_, pipeline_->brakes(), pipeline_->rules(), pipeline_->publisher(), pipeline_->mesh());
  add_operator_routes(*admin_, *views_, *orders_, *operator_brakes_,
                      [this](const MetricVisitor& visitor) { visit(visitor); });
  return {};
}

void PopDaemon::visit(const MetricVisitor& visitor) const {
  workers_->visit(visitor);
  pipeline_->visit(visitor);
  if (tls_ != nullptr) tls_->visit(visitor);
  admin_->visit(visitor);
}

void PopDaemon::watch_signals() {
  for (const int number : {SIGTERM, SIGINT}) {
    signals_.push_back(std::make_unique<Signal>(loop_, number, [this] { stop(); }));
  }
  signals_.push_back(
      std::make_unique<Signal>(loop_, SIGHUP, [this] { reload_->begin([](const RulesReload::Outcome&) {}); }));
}

// The last step of a reload, and the only one that changes anything. Workers get the new rules last: by then the daemon
// knows their numbers.
Status PopDaemon::apply_config(const Config& wanted, const SharedRules& rules, const std::vector<std::byte>& block) {
  const bool with_tls = tls_ != nullptr && wanted.mesh && wanted.mesh->tls;
  if (with_tls) {
    if (Status fits = tls_->check(wanted.mesh->tls->credentials); !fits) return fits;
  }
  Result<RulesFile> file = write_rules(block);
  if (!file) return Error{file.error()};
  if (with_tls) {
    if (Status used = tls_->use(wanted.mesh->tls->credentials); !used) return used;
    config_.mesh->tls = wanted.mesh->tls;
  }
  config_.secrets = wanted.secrets;
  config_.trusted_proxies = wanted.trusted_proxies;
  config_.log_level = wanted.log_level;
  config_.clock_tolerance = wanted.clock_tolerance;
  pipeline_->use_clock_tolerance(config_.clock_tolerance);
  spdlog::set_level(spdlog::level::from_str(config_.log_level));
  pipeline_->use_rules(rules);
  if (Mesh* mesh = pipeline_->mesh())
    mesh->use_secrets(secret_id(config_.secrets.first), second_secret_name(config_.secrets));
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
  pipeline_->finish();
  stop_timer_.emplace(loop_, [this] { finish_stop(); });
  stop_timer_->start_every(kStopPoll);
}

void PopDaemon::finish_stop() {
  const bool in_time = HostClock::now() < stop_by_;
  if (!pipeline_->is_idle() && in_time) return;
  if (!in_time) spdlog::warn("stopping with counts that no shard has confirmed; the ledger has them as lost");
  pipeline_->say_goodbye();
  loop_.stop();
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(Config config) {
  auto daemon = std::make_unique<PopDaemon>(std::move(config));
  if (Status opened = daemon->open(); !opened) return Error{opened.error()};
  return std::unique_ptr<Daemon>(std::move(daemon));
}

}  // namespace popgate
