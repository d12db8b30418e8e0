// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/node.h"

#include <sys/mman.h>

#include <filesystem>
#include <utility>

namespace popgate::simulation {

// The table as a worker maps it.
class Node::MappedTable {
 public:
  MappedTable(int descriptor, std::size_t bytes) : bytes_(bytes) {
    mapped_ = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    POPGATE_ASSERT(mapped_ != MAP_FAILED);
    const char* reason = nullptr;
    POPGATE_ASSERT(reader_.open({static_cast<const std::byte*>(mapped_), bytes_}, reason));
  }
  ~MappedTable() { munmap(mapped_, bytes_); }
  MappedTable(const MappedTable&) = delete;
  MappedTable& operator=(const MappedTable&) = delete;
  [[nodiscard]] const TableReader& reader() const { return reader_; }

 private:
  void* mapped_ = nullptr;
  std::size_t bytes_;
  TableReader reader_;
};

Node::Node(Network& network, HostNumber host, Machine::Clocks clocks, Config config, std::string folder, Watch watch)
    : network_(network),
      host_(host),
      machine_(network.world(), config.node, clocks),
      random_(network.world().random_for("node " + config.node)),
      config_(std::move(config)),
      folder_(std::move(folder)),
      watch_(std::move(watch)) {
  config_.run_dir = folder_ + "/run";
  config_.state_dir = folder_ + "/state";
  std::filesystem::create_directories(config_.run_dir);
  std::filesystem::create_directories(config_.state_dir);
}

Node::~Node() { kill(); }

// ---- The daemon ----

void Node::start() {
  POPGATE_ASSERT(!is_running());
  ++starts_;
  process_ = std::make_unique<Process>(network_.world(), machine_, random_);
  to_shards_ = std::make_unique<ModelTransport>(network_, *process_, host_);
  to_peers_ = std::make_unique<ModelTransport>(network_, *process_, host_);
  const auto on_judged = [this](const SlotTotals& totals, const JudgedTotals& judged, PopInstant) {
    if (watch_.judged) watch_.judged(*this, totals, judged);
  };
  Result<std::unique_ptr<Pipeline>> opened =
      Pipeline::open(config_, {*process_, *to_shards_, *to_peers_, random_(), on_judged, mesh_output_bytes_max_});
  if (!opened) std::fprintf(stderr, "node %s: %s\n", name().c_str(), opened.error().c_str());
  POPGATE_ASSERT(opened.ok());
  pipeline_ = *std::move(opened);
  const Status started = pipeline_->start();
  if (!started) std::fprintf(stderr, "node %s: %s\n", name().c_str(), started.error().c_str());
  POPGATE_ASSERT(started.ok());
  pipeline_->watch_requests([this]() -> const RequestTotals& { return requests_; });
  process_->on_turn([this] {
    if (watch_.turn && is_running()) watch_.turn(*this);
  });
  table_.reset();  // workers attach anew
  table_ =
      std::make_unique<MappedTable>(pipeline_->publisher().table_descriptor(), pipeline_->publisher().table_bytes());
  if (worker_rules_ == nullptr) worker_rules_ = pipeline_->rules();
  map_rules_soon();
  poll_soon();
}

void Node::kill() {
  stop_timer_.reset();
  pipeline_.reset();
  to_peers_.reset();
  to_shards_.reset();
  process_.reset();
  poll_waits_ = false;
}

void Node::lose_records() {
  POPGATE_ASSERT(!is_running());
  std::filesystem::remove_all(config_.state_dir);
  std::filesystem::create_directories(config_.state_dir);
}

void Node::stop(std::function<void()> stopped) {
  POPGATE_ASSERT(is_running());
  if (stop_timer_) return;
  stopped_ = std::move(stopped);
  stop_by_ = process_->host_now() + kStopWait;
  take_from_ring(ring_.size());
  stop_timer_.emplace(*process_, [this] { finish_stop(); });
  pipeline_->finish();
  stop_timer_->start_every(kStopPoll);
}

void Node::finish_stop() {
  if (!pipeline_->is_idle() && process_->host_now() < stop_by_) return;
  pipeline_->say_goodbye();
  stop_timer_->stop();
  // The process exits between two events.
  network_.world().after(microseconds(0), [this, start = starts_] {
    if (!is_running() || starts_ != start) return;  // killed meanwhile
    kill();
    if (stopped_) std::exchange(stopped_, {})();
  });
}

void Node::look_whether_full() {
  const std::size_t live = pipeline_->mitigations().live_count(EntryKind::kAutomatic);
  if (live >= config_.table_entries) full_at_ = network_.world().now();
}

void Node::use_rules(const RuleSet& rules) {
  config_.rules = rules;
  if (is_running()) process_->post([this] { reload(); });
}

// Whatever the configuration is by now: two reloads may come close together.
void Node::reload() {
  if (watch_.reload) watch_.reload(*this, Reload::kBegins);
  Result<SharedRules> numbered = pipeline_->numbered(config_.rules);
  POPGATE_ASSERT(numbered.ok());
  pipeline_->use_rules(*std::move(numbered));
  if (watch_.reload) watch_.reload(*this, Reload::kDone);
  map_rules_soon();
}

// ---- The workers ----

void Node::map_rules_soon() {
  network_.world().after(draw(random_, microseconds(0), kRulesMapMax), [this, start = starts_] {
    if (is_running() && starts_ == start) worker_rules_ = pipeline_->rules();
  });
}

const Rule* Node::worker_rule(RuleId rule) const {
  const Rule* const known = worker_rules_ == nullptr ? nullptr : worker_rules_->by_id(rule);
  return known != nullptr && known->enabled ? known : nullptr;
}

TableAnswer Node::check(const Rule& rule, const Key& key) {
  const TableAnswer answer = look_up(key);
  ++requests_.requests;
  const bool by_rule = answer.live && (answer.flags & kTableFlagOperator) == 0;
  if (by_rule && rule.max_blocked_share) ++requests_.would_block[answer.rule];
  if (watch_.checked) watch_.checked(*this, rule, answer);
  return answer;
}

TableAnswer Node::look_up(const Key& key) const {
  return table_ == nullptr ? TableAnswer{} : table_->reader().look_up(key, machine_.host_now());
}

void Node::record(const Rule& rule, const Key& key) {
  recorded_[rule.id] += rule.cost;
  if (ring_.size() >= kRingSlots) {
    ring_dropped_[rule.id] += rule.cost;
    return;
  }
  waiting_[rule.id] += rule.cost;
  const std::int64_t stamp = machine_.wall_now().time_since_epoch().count();
  ring_.push_back({rule.id, {.key = key, .stamp_us = stamp, .rule = kNoRule, .cost = rule.cost}});
  if (is_running()) poll_soon();
}

void Node::poll_soon() {
  if (poll_waits_ || is_stopping()) return;
  poll_waits_ = true;
  process_->post_at(network_.world().now() + draw(random_, microseconds(0), kPollMax), [this] {
    poll_waits_ = false;
    if (is_stopping()) return;
    take_from_ring(kHitsPerTurn);
    if (!ring_.empty()) poll_soon();
  });
}

// Taken out of the ring and into the ledger in one step, as a real ring is.
void Node::take_from_ring(std::size_t hits_max) {
  const PopInstant now = machine_.wall_now();
  for (; hits_max > 0 && !ring_.empty(); --hits_max) {
    Waiting waiting = ring_.front();
    ring_.pop_front();
    waiting_[waiting.rule] -= waiting.hit.cost;
    waiting.hit.rule = number_of(waiting.rule);
    pipeline_->ledger().add(waiting.hit.rule, LedgerColumn::kDrained, waiting.hit.cost);
    pipeline_->add(waiting.hit, now);
  }
}

RuleNumber Node::number_of(RuleId rule) const {
  const std::optional<RuleNumber> number = pipeline_->ledger().number_for(rule);
  POPGATE_ASSERT(number.has_value());
  return *number;
}

namespace {
std::uint64_t value_of(const std::map<RuleId, std::uint64_t>& values, RuleId rule) {
  const auto found = values.find(rule);
  return found == values.end() ? 0 : found->second;
}
}  // namespace

std::uint64_t Node::recorded(RuleId rule) const { return value_of(recorded_, rule); }
std::uint64_t Node::waiting(RuleId rule) const { return value_of(waiting_, rule); }
std::uint64_t Node::ring_dropped(RuleId rule) const { return value_of(ring_dropped_, rule); }

double Node::figure(std::string_view name) const {
  double value = -1;
  pipeline_->visit([&](const Metric& metric) {
    if (metric.name == name) value = (value < 0 ? 0 : value) + metric.value;
  });
  return value;
}

}  // namespace popgate::simulation
