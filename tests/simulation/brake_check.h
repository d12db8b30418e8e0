// SPDX-License-Identifier: Apache-2.0
//
// The brakes, held against what was ordered: where blocking is off, no worker is told to block, and nothing else
// changes.
//
//     an order      is in force on its node when the call returns, and changes no mitigation and no counter
//     workers       at every look-up of theirs, and for every entry at every change: told to block exactly when the
//                   rule blocks and neither the node nor the PoP was told to stop, for everything or for the rule; an
//                   operator's block stands still only with everything. Also while no daemon runs
//     an order for the PoP   is known within kSpreadWithin wherever a clean way leads, and in the end everywhere
//     registers     never go back, and hold no operator's order that nobody gave
//     a restart     with the disk, knows what was known; without it, all that was off for workers still is
//
// Threads: one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/simulation/entry_check.h"

namespace popgate::simulation {

class BrakeCheck {
 public:
  static constexpr std::uint64_t kTurnsBetweenLooks = 16;

  BrakeCheck(Pop& pop, const EntryCheck& entries) : pop_(pop), entries_(entries) {}
  /// Gives the order, in a turn of the node's loop.
  void order(Node& node, const Brakes::Order& order);
  void turn(Node& node);
  /// A worker asked for a request.
  void checked(Node& node, const Rule& rule, const TableAnswer& answer);
  void started(Node& node, bool with_records);
  /// Empty when all nodes were told the same about the PoP.
  [[nodiscard]] std::string difference() const;

  [[nodiscard]] std::uint64_t orders() const { return given_.size(); }
  [[nodiscard]] std::uint64_t let_pass() const { return let_pass_; }  // requests that only a brake did not block
  [[nodiscard]] std::uint64_t fuses_blown() const { return blown_.size(); }

 private:
  using Registers = Brakes::Registers;
  struct Told {
    std::uint64_t turns = 0;
    std::uint64_t stamp = 0;
    std::uint64_t digest = 0;
    SharedRules rules;
    Registers registers[2];
  };
  /// An order, also when its node gives it anew with a later version because no peer has heard it yet.
  using Given = std::tuple<BrakeSide, RuleId, NodeId, PopInstant, bool>;

  [[nodiscard]] static Given given(BrakeSide side, const Brake& brake) {
    return {side, brake.rule, brake.version.node, brake.ordered_at, brake.off};
  }
  [[nodiscard]] static const Registers& registers_of(Node& node, BrakeSide side);
  [[nodiscard]] static bool is_off(const Told& told, RuleId scope);
  void take(Node& node, Told& told);
  void look_at_registers(Node& node, Told& told);
  void look_at_workers(Node& node, const Told& told);
  void look_at_entry(Node& node, const Told& told, const Mitigation& entry);
  void expect_spread(Node& from, RuleId scope);

  Pop& pop_;
  const EntryCheck& entries_;
  std::map<HostNumber, Told> told_;
  std::set<Given> given_;  // by operators
  std::set<BrakeVersion> blown_;
  std::uint64_t let_pass_ = 0;
};

}  // namespace popgate::simulation
