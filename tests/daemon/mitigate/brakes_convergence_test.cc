// SPDX-License-Identifier: Apache-2.0
// Random histories of a PoP's brakes: orders on several nodes whose clocks are hours apart and are set back, so that
// versions are given twice, while messages are lost, repeated and reordered and daemons restart with their file, with a
// stale one and with none. RapidCheck prints its seed; RC_PARAMS="seed=N" repeats a run.
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

/// An order, however often it is given anew: its reason.
using Orders = std::set<std::string>;

/// Nodes, and what is under way between them. Beside them what nobody in a real PoP knows: which orders each orderer
/// had heard of.
class BrakeModel {
 public:
  BrakeModel(std::size_t nodes, bool disks_fail) : disks_fail_(disks_fail), nodes_(nodes) {
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
    if (step.kind == 17) nodes_[node].clock_ahead = seconds(static_cast<std::int64_t>(step.amount % 5) * 1800 - 3600);
    if (step.kind == 18) nodes_[node].disk_fails = disks_fail_ && step.amount % 2 == 0;
    if (step.kind == 19) now_ += seconds(step.amount % 3);
  }

  /// Loses what is under way; then every pair greets until nothing changes.
  void heal() {
    for (const Node& node : nodes_) {
      for (const auto& [rule, brake] : node.brakes->registers(BrakeSide::kPop)) held_.insert(brake.reason);
    }
    for (std::size_t round = 0; round < nodes_.size() + 1; ++round) {
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
  /// No order stands of which another one that was left had heard when it was given. An `off` may: only `and_off`.
  [[nodiscard]] bool none_undone(bool and_off) const {
    for (const auto& [rule, standing] : nodes_[0].brakes->registers(BrakeSide::kPop)) {
      if (standing.off && !and_off) continue;
      for (const auto& [name, order] : orders_) {
        if (order.rule == rule && held_.contains(name) && order.known.contains(standing.reason)) return false;
      }
    }
    return true;
  }
  /// An `off` that its node could not tell anybody was never undone there by what a peer told.
  [[nodiscard]] bool off_stood_where_it_was_ordered() const { return off_stood_; }

 private:
  using seconds = std::chrono::seconds;
  struct Stored {
    Brake brake;
    bool untold;
  };
  struct Node {
    std::unique_ptr<Brakes> brakes;
    std::map<RuleId, Stored> file;
    Orders known;
    seconds clock_ahead{0};
    bool disk_fails = false;
  };
  struct Message {
    std::size_t from;
    std::size_t to;
    std::vector<Brake> brakes;
    bool all;  // of the sender's: a greeting
  };
  struct Ordered {
    RuleId rule = 0;
    Orders known;  // by the orderer, before
  };

  void start(std::size_t node, bool with_file) {
    Node& one = nodes_[node];
    if (!with_file) one.file.clear();
    one.known.clear();
    one.brakes = std::make_unique<Brakes>("node" + std::to_string(node),
                                          [this, node](const Brakes::Change& change) { on_change(node, change); });
    one.brakes->expect_peers();
    for (const auto& [rule, stored] : one.file) {
      one.brakes->restore(BrakeSide::kPop, stored.brake, stored.untold);
      one.known.insert(stored.brake.reason);
    }
  }

  void write_file(Node& node) {
    if (node.disk_fails) return;
    for (const auto& [rule, brake] : node.brakes->registers(BrakeSide::kPop)) {
      node.file[rule] = {brake, node.brakes->is_untold(BrakeSide::kPop, rule)};
    }
  }

  void order(std::size_t node, RuleId rule, bool off) {
    const std::string name = std::to_string(orders_.size());
    orders_[name] = {rule, nodes_[node].known};
    Brakes& brakes = *nodes_[node].brakes;
    const PopInstant wall = now_ + nodes_[node].clock_ahead;
    if (!brakes.order({.side = BrakeSide::kPop, .rule = rule, .off = off, .reason = name}, wall)) std::abort();
    if (brakes.find(BrakeSide::kPop, rule)->reason != name) std::abort();
  }

  void on_change(std::size_t node, const Brakes::Change& change) {
    write_file(nodes_[node]);
    for (const Brake& brake : change.brakes) {
      // One that is given anew is given by somebody who knows all that he knows by now, if he does not forget it.
      if (change.from == 0 && !nodes_[node].disk_fails) {
        orders_[brake.reason].known.insert(nodes_[node].known.begin(), nodes_[node].known.end());
      }
      orders_[brake.reason].known.erase(brake.reason);
      nodes_[node].known.insert(brake.reason);
    }
    if (!change.untold) tell(node, {change.brakes.begin(), change.brakes.end()}, change.from);
  }

  void tell(std::size_t node, const std::vector<Brake>& brakes, NodeId but) {
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      if (to == node || node_id("node" + std::to_string(to)) == but) continue;
      under_way_.push_back({node, to, brakes, false});
    }
  }

  void greet(std::size_t from, std::size_t to) {
    if (from != to) under_way_.push_back({from, to, nodes_[from].brakes->told(), true});
  }

  void deliver(std::size_t which, bool again) {
    if (under_way_.empty()) return;
    const std::size_t place = which % under_way();
    const Message message = under_way_[place];
    if (!again) under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(place));
    Node& node = nodes_[message.to];
    const std::set<RuleId> off = untold_off(node);
    for (const Brake& brake : message.brakes) node.known.insert(brake.reason);
    node.brakes->merge(message.brakes, node_id("node" + std::to_string(message.from)));
    for (const RuleId rule : off) off_stood_ = off_stood_ && node.brakes->find(BrakeSide::kPop, rule)->off;
    if (!message.all) return;
    const std::vector<Brake> due = node.brakes->heard_peer();
    write_file(node);
    if (!due.empty()) tell(message.to, due, 0);
  }

  [[nodiscard]] static std::set<RuleId> untold_off(const Node& node) {
    std::set<RuleId> off;
    for (const auto& [rule, brake] : node.brakes->registers(BrakeSide::kPop)) {
      if (brake.off && node.brakes->is_untold(BrakeSide::kPop, rule)) off.insert(rule);
    }
    return off;
  }

  [[nodiscard]] std::size_t under_way() const { return under_way_.size(); }

  bool disks_fail_;
  bool off_stood_ = true;
  std::vector<Node> nodes_;
  std::vector<Message> under_way_;
  std::map<std::string, Ordered> orders_;
  Orders held_;  // by any node when the exchange began: the rest was forgotten by all
  PopInstant now_{seconds(1'700'000'000)};
};

TEST(BrakesConvergence, all_nodes_end_with_the_same_orders_and_none_that_was_known_undoes_a_later_one) {
  ASSERT_EQ(kRunsSet, 0);
  EXPECT_TRUE(rc::check("after any history and a final exchange", [](const std::vector<BrakeStep>& history) {
    BrakeModel pop(*rc::gen::inRange<std::size_t>(3, 6), false);
    for (const BrakeStep& step : history) pop.run(step);
    pop.heal();
    RC_ASSERT(pop.all_equal());
    RC_ASSERT(pop.none_undone(true));
    RC_ASSERT(pop.off_stood_where_it_was_ordered());
  }));
}

// A file that could not be written may call untold what was told: then an `off` may come back, never an `on`.
TEST(BrakesConvergence, with_stale_files_all_nodes_end_with_the_same_orders_and_in_doubt_it_is_off) {
  EXPECT_TRUE(rc::check("after any history and a final exchange", [](const std::vector<BrakeStep>& history) {
    BrakeModel pop(*rc::gen::inRange<std::size_t>(3, 6), true);
    for (const BrakeStep& step : history) pop.run(step);
    pop.heal();
    RC_ASSERT(pop.all_equal());
    RC_ASSERT(pop.none_undone(false));
    RC_ASSERT(pop.off_stood_where_it_was_ordered());
  }));
}

}  // namespace
}  // namespace popgate
