// SPDX-License-Identifier: Apache-2.0
// Random histories of a PoP's brakes: orders on several nodes with clocks an hour apart, while messages are lost,
// repeated and reordered and daemons restart with and without their file. RapidCheck prints its seed;
// RC_PARAMS="seed=N" repeats a run.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>

#include "daemon/mitigate/brakes.h"

namespace popgate {

struct BrakeStep {
  std::uint8_t kind = 0;
  std::uint8_t node = 0;
  std::uint8_t rule = 0;
  std::uint16_t amount = 0;
};

}  // namespace popgate

namespace rc {

template <>
struct Arbitrary<popgate::BrakeStep> {
  static Gen<popgate::BrakeStep> arbitrary() {
    using popgate::BrakeStep;
    return gen::build<BrakeStep>(gen::set(&BrakeStep::kind, gen::inRange<std::uint8_t>(0, 20)),
                                 gen::set(&BrakeStep::node, gen::inRange<std::uint8_t>(0, 5)),
                                 gen::set(&BrakeStep::rule, gen::inRange<std::uint8_t>(0, 3)),
                                 gen::set(&BrakeStep::amount, gen::arbitrary<std::uint16_t>()));
  }
};

}  // namespace rc

namespace popgate {

void showValue(const BrakeStep& step, std::ostream& out) {
  out << "{" << int{step.kind} << ", " << int{step.node} << ", " << int{step.rule} << ", " << step.amount << "}";
}

namespace {

const int kRunsSet = setenv("RC_PARAMS", "max_success=3000 max_size=120", 0);

using Versions = std::set<BrakeVersion>;

/// Nodes, and what is under way between them. Beside them what nobody in a real PoP knows: which orders each orderer
/// had heard of.
class BrakeModel {
 public:
  explicit BrakeModel(std::size_t nodes) : nodes_(nodes) {
    for (std::size_t i = 0; i < nodes; ++i) start(i, false);
  }

  void run(const BrakeStep& step) {
    const std::size_t node = step.node % nodes_.size();
    const std::size_t other = step.amount % nodes_.size();
    if (step.kind < 6) return order(node, step.rule, step.amount % 2 == 0);
    if (step.kind < 12) return deliver(step.amount, step.kind % 2 == 0);
    if (step.kind < 14 && !under_way_.empty()) under_way_.erase(under_way_.begin() + step.amount % under_way());
    if (step.kind == 14) greet(node, other);
    if (step.kind == 15) start(node, true);
    if (step.kind == 16) start(node, false);
    if (step.kind > 16) now_ += seconds(step.amount);
  }

  /// Loses what is under way; then every pair greets until nothing changes.
  void heal() {
    for (const Node& node : nodes_) {
      for (const auto& [rule, brake] : node.brakes->registers(BrakeSide::kPop)) held_.insert(brake.version);
    }
    for (std::size_t round = 0; round < nodes_.size(); ++round) {
      under_way_.clear();
      for (std::size_t a = 0; a < nodes_.size(); ++a) {
        for (std::size_t b = 0; b < nodes_.size(); ++b) greet(a, b);
      }
      while (!under_way_.empty()) deliver(0, false);
    }
  }

  [[nodiscard]] bool all_equal() const {
    for (const Node& node : nodes_) {
      if (node.brakes->digest() != nodes_[0].brakes->digest()) return false;
      if (node.brakes->registers(BrakeSide::kPop) != nodes_[0].brakes->registers(BrakeSide::kPop)) return false;
    }
    return true;
  }
  /// No order stands of which another one that was left had heard when it was given.
  [[nodiscard]] bool none_undone() const {
    for (const auto& [rule, standing] : nodes_[0].brakes->registers(BrakeSide::kPop)) {
      for (const auto& [version, order] : orders_) {
        if (order.rule == rule && held_.contains(version) && order.known.contains(standing.version)) return false;
      }
    }
    return true;
  }

 private:
  using seconds = std::chrono::seconds;
  struct Node {
    std::unique_ptr<Brakes> brakes;
    std::map<RuleId, Brake> file;
    Versions known;
  };
  struct Message {
    std::size_t from;
    std::size_t to;
    std::vector<Brake> brakes;
  };
  struct Ordered {
    RuleId rule;
    Versions known;  // by the orderer, before
  };

  void start(std::size_t node, bool with_file) {
    now_ +=
        std::chrono::microseconds(1);  // a restart takes time: else it could give a version of its former self again
    Node& one = nodes_[node];
    if (!with_file) one.file.clear();
    one.known.clear();
    one.brakes = std::make_unique<Brakes>("node" + std::to_string(node),
                                          [this, node](const Brakes::Change& change) { on_change(node, change); });
    for (const auto& [rule, brake] : one.file) {
      one.brakes->restore(BrakeSide::kPop, brake);
      one.known.insert(brake.version);
    }
  }

  void order(std::size_t node, RuleId rule, bool off) {
    // Clocks are up to an hour apart.
    const PopInstant wall = now_ + std::chrono::minutes(15 * static_cast<int>(node));
    ordering_ = nodes_[node].known;
    if (!nodes_[node].brakes->order({.side = BrakeSide::kPop, .rule = rule, .off = off}, wall)) std::abort();
  }

  void on_change(std::size_t node, const Brakes::Change& change) {
    for (const Brake& brake : change.brakes) {
      nodes_[node].file[brake.rule] = brake;
      nodes_[node].known.insert(brake.version);
      if (change.from == 0) orders_[brake.version] = {brake.rule, ordering_};
    }
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      if (to == node || node_id("node" + std::to_string(to)) == change.from) continue;
      under_way_.push_back({node, to, {change.brakes.begin(), change.brakes.end()}});
    }
  }

  void greet(std::size_t from, std::size_t to) {
    if (from == to) return;
    Message all{from, to, {}};
    for (const auto& [rule, brake] : nodes_[from].brakes->registers(BrakeSide::kPop)) all.brakes.push_back(brake);
    under_way_.push_back(all);
  }

  void deliver(std::size_t which, bool again) {
    if (under_way_.empty()) return;
    const std::size_t place = which % under_way();
    const Message message = under_way_[place];
    if (!again) under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(place));
    for (const Brake& brake : message.brakes) nodes_[message.to].known.insert(brake.version);
    nodes_[message.to].brakes->merge(message.brakes, node_id("node" + std::to_string(message.from)));
  }

  [[nodiscard]] std::size_t under_way() const { return under_way_.size(); }

  std::vector<Node> nodes_;
  std::vector<Message> under_way_;
  std::map<BrakeVersion, Ordered> orders_;
  Versions held_;  // by any node when the exchange began: the rest was forgotten by all
  Versions ordering_;
  PopInstant now_{std::chrono::seconds(1'700'000'000)};
};

TEST(BrakesConvergence, all_nodes_end_with_the_same_orders_and_none_that_was_known_undoes_a_later_one) {
  ASSERT_EQ(kRunsSet, 0);
  EXPECT_TRUE(rc::check("after any history and a final exchange", [](const std::vector<BrakeStep>& history) {
    BrakeModel pop(*rc::gen::inRange<std::size_t>(3, 6));
    for (const BrakeStep& step : history) pop.run(step);
    pop.heal();
    RC_ASSERT(pop.all_equal());
    RC_ASSERT(pop.none_undone());
  }));
}

}  // namespace
}  // namespace popgate
