// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/pop.h"

#include <cstdlib>
#include <filesystem>

namespace popgate::simulation {
namespace {

std::string node_name(std::size_t node) { return "node-" + std::to_string(node + 1); }

std::vector<ShardConfig> shards_of(std::size_t count) {
  std::vector<ShardConfig> shards;
  for (std::size_t i = 0; i < count; ++i) {
    const HostNumber host = Pop::kFirstShard + static_cast<HostNumber>(i);
    shards.push_back({.name = "shard-" + std::to_string(i + 1),
                      .address = {.host = address_of_host(host), .port = ShardServer::kPort, .unix_path = {}},
                      .weight = 1});
  }
  return shards;
}

std::uint32_t ring_of(std::size_t shard_count) {
  if (shard_count == 0) return 0;
  const Result<Placement> placement = Placement::make(shards_of(shard_count));
  POPGATE_ASSERT(placement.ok());
  return placement->ring_id();
}

// Two clocks that are right differ by no more than the tolerance less a tick, also after two minutes of drift.
Machine::Clocks right_clocks(Random& random) {
  constexpr std::int64_t kDriftMax = 20;
  constexpr microseconds kAheadMax{5000};
  return {.booted = HostInstant(std::chrono::hours(1) + draw(random, microseconds(0), std::chrono::hours(200))),
          .wall_ahead = draw(random, -kAheadMax, kAheadMax),
          .drift_ppm = static_cast<std::int64_t>(draw(random, 0, 2 * kDriftMax)) - kDriftMax};
}

}  // namespace

RunFolder::RunFolder() {
  std::string pattern = "/dev/shm/popgate-simulation-XXXXXX";
  POPGATE_ASSERT(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Pop::Pop(World& world, const Shape& shape)
    : world_(world),
      shape_(shape),
      network_(world),
      conditions_(world),
      truth_(ring_of(shape.shards)),
      random_(world.random_for("pop")) {
  POPGATE_ASSERT(shape.nodes >= 1 && shape.nodes <= kNodesMax);
  for (const ShardConfig& shard : shards_of(shape.shards)) {
    const HostNumber host = kFirstShard + static_cast<HostNumber>(shards_.size());
    const auto counted = [this](std::string_view counter, std::uint64_t hits) {
      const Truth::Excess excess = truth_.counted(counter, hits, world_.now());
      // A daemon counts what workers recorded under the window of before in slots of the new one.
      if (excess == Truth::Excess::kNone || (excess == Truth::Excess::kSlot && windows_changed_)) return;
      broken("3", std::string(counter) +
                      (excess == Truth::Excess::kKey
                           ? " was given more hits than were ever made: some were counted twice"
                           : " was given more hits than belong there: some were counted twice, or by a wrong clock"));
    };
    shards_.push_back(std::make_unique<ShardServer>(network_, host, shard.name, counted));
  }
  Random random = world.random_for("clocks");
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    const HostNumber host = kFirstNode + static_cast<HostNumber>(i);
    if (shape.proxied) proxies_.push_back(std::make_unique<ProxyServer>(network_, host, shards_of(shape.shards)));
    nodes_.push_back(std::make_unique<Node>(network_, kFirstNode + static_cast<HostNumber>(i), right_clocks(random),
                                            config_of(i), folder_.path() + "/" + node_name(i), forwarded()));
    nodes_.back()->bound_mesh_output(shape.mesh_output_bytes_max);
  }
}

Config Pop::config_of(std::size_t node) const {
  Config config;
  config.node = node_name(node);
  config.clock_tolerance = kTolerance;
  config.table_entries = shape_.table_entries;
  config.keys_max = shape_.keys_max;
  config.rules = shape_.rules;
  if (shape_.shards > 0) {
    config.counters.emplace().shards = shards_of(shape_.shards);
    config.counters->batches_in_flight = shape_.batches_in_flight;
    config.counters->batch_keys_max = shape_.batch_keys_max;
  }
  const HostNumber host = kFirstNode + static_cast<HostNumber>(node);
  if (shape_.proxied)
    config.counters->proxy = Endpoint{.host = address_of_host(host), .port = ProxyServer::kPort, .unix_path = {}};
  if (shape_.nodes == 1) return config;
  const auto endpoint = [](std::size_t i) {
    return Endpoint{
        .host = address_of_host(kFirstNode + static_cast<HostNumber>(i)), .port = Node::kMeshPort, .unix_path = {}};
  };
  config.mesh.emplace().listen = endpoint(node);
  for (std::size_t i = 0; i < shape_.nodes; ++i) {
    if (i != node) config.mesh->peers.push_back({.node = node_name(i), .address = endpoint(i)});
  }
  return config;
}

void Pop::start() {
  for (const auto& shard : shards_) shard->start();
  for (const auto& node : nodes_) node->start();
}

Node* Pop::node_at(HostNumber host) {
  const std::size_t index = host - kFirstNode;
  return host >= kFirstNode && index < nodes_.size() ? nodes_[index].get() : nullptr;
}

// The watch may be set later.
Node::Watch Pop::forwarded() {
  return {.judged =
              [this](Node& node, const SlotTotals& totals, const JudgedTotals& judged) {
                if (watch_.judged) watch_.judged(node, totals, judged);
              },
          .turn =
              [this](Node& node) {
                stamps_.turn(node);
                if (watch_.turn) watch_.turn(node);
              },
          .reload =
              [this](Node& node, Node::Reload reload) {
                if (watch_.reload) watch_.reload(node, reload);
              },
          .checked =
              [this](Node& node, const Rule& rule, const TableAnswer& answer) {
                if (watch_.checked) watch_.checked(node, rule, answer);
              }};
}

RuleSet Pop::configured() const {
  std::vector<Rule> rules = shape_.rules.all();
  std::erase_if(rules, [this](const Rule& rule) { return deleted_.contains(rule.id); });
  return RuleSet(std::move(rules));
}

void Pop::use_rules(RuleSet rules, std::set<RuleId> deleted, microseconds spread) {
  for (const Rule& rule : rules.all()) {
    if (shape_.rules.by_id(rule.id)->window.window != rule.window.window) windows_changed_ = true;
  }
  shape_.rules = std::move(rules);
  deleted_ = std::move(deleted);
  rules_same_since_ = world_.now() + spread;
  for (const auto& node : nodes_) {
    world_.after(draw(random_, microseconds(0), spread), [this, &node] { node->use_rules(configured()); });
  }
}

void Pop::broken(const std::string& promise, const std::string& how) {
  if (!fault_.empty()) return;
  fault_ = "promise " + promise + ": " + how;
  world_.note("BROKEN " + fault_);
  world_.stop();
}

}  // namespace popgate::simulation
