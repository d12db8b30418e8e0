// SPDX-License-Identifier: Apache-2.0
//
// A simulated PoP: nodes, shards, the network between them, and what really happened on it.
//
// Threads: one.
// Limits: kNodesMax nodes. The folder of a run lies on tmpfs and is removed with it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/conditions.h"
#include "tests/simulation/node.h"
#include "tests/simulation/proxy_server.h"
#include "tests/simulation/shard_server.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/wrong_stamps.h"

namespace popgate::simulation {

/// A folder of its own on tmpfs, removed at the end.
class RunFolder {
 public:
  RunFolder();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Pop {
 public:
  static constexpr std::size_t kNodesMax = 64;
  static constexpr HostNumber kFirstNode = 0x0101;   // 127.0.1.1
  static constexpr HostNumber kFirstShard = 0x0201;  // 127.0.2.1
  static constexpr milliseconds kTolerance{20};

  struct Shape {
    std::size_t nodes = 3;
    std::size_t shards = 2;  // 0: counters in the daemons
    bool proxied = false;    // through a twemproxy on each node's host
    std::uint32_t keys_max = 1024;
    std::uint32_t table_entries = 256;
    std::uint32_t batches_in_flight = 4;
    std::uint32_t batch_keys_max = 1000;
    std::size_t mesh_output_bytes_max = kOutputBytesMax;
    RuleSet rules;
  };

  Pop(World& world, const Shape& shape);
  Pop(const Pop&) = delete;
  Pop& operator=(const Pop&) = delete;

  void start();
  /// Who looks at every judgement and every turn of a daemon's loop.
  void watch(Node::Watch watch) { watch_ = std::move(watch); }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] Conditions& conditions() { return conditions_; }
  [[nodiscard]] Truth& truth() { return truth_; }
  [[nodiscard]] WrongStamps& stamps() { return stamps_; }
  /// Every rule that this PoP has or had, as it was last; always in the same order.
  [[nodiscard]] const RuleSet& rules() const { return shape_.rules; }
  /// Configured and enabled, on every node that has the configuration of now.
  [[nodiscard]] bool is_in_force(const Rule& rule) const { return rule.enabled && !deleted_.contains(rule.id); }
  /// When the last node was given the configuration of now.
  [[nodiscard]] ModelInstant rules_same_since() const { return rules_same_since_; }
  [[nodiscard]] std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }
  [[nodiscard]] std::vector<std::unique_ptr<ShardServer>>& shards() { return shards_; }
  [[nodiscard]] bool is_proxied() const { return shape_.proxied; }
  [[nodiscard]] Node* node_at(HostNumber host);
  /// `rules`: as rules(), of which `deleted` are not configured. Each node is given them within `spread`.
  void use_rules(RuleSet rules, std::set<RuleId> deleted, microseconds spread);

  /// A promise was broken: the run ends, and says so.
  void broken(const std::string& promise, const std::string& how);
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  [[nodiscard]] Config config_of(std::size_t node) const;
  [[nodiscard]] Node::Watch forwarded();
  [[nodiscard]] RuleSet configured() const;

  World& world_;
  Shape shape_;
  RunFolder folder_;
  Network network_;
  Conditions conditions_;
  Truth truth_;
  Node::Watch watch_;
  std::set<RuleId> deleted_;
  ModelInstant rules_same_since_{};
  bool windows_changed_ = false;  // hits under way were stamped for slots of another length
  std::vector<std::unique_ptr<ShardServer>> shards_;
  std::vector<std::unique_ptr<ProxyServer>> proxies_;
  std::vector<std::unique_ptr<Node>> nodes_;
  WrongStamps stamps_{world_, conditions_, nodes_, truth_};
  Random random_;
  std::string fault_;
};

}  // namespace popgate::simulation
