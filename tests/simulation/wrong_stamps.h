// SPDX-License-Identifier: Apache-2.0
//
// Hits that workers stamped by a wall clock that was off, and which of them may be counted all the same.
//
// A node that is able to tell that its clock is off counts none of them: steps of its own clock it sees before it sends
// anything, and for the rest it waits (daemon/clock_guard.h). It is able to tell while it can hear right clocks that
// are at least as many as all others together, its own included: they decide the median. Excused is what was stamped
//
//     while it could not tell, or by a daemon before it that is not there any more
//     just before the clock was set right, and perhaps in the ring until after that
//
// Threads: one.
// Limits: hits are kept until their clock is right.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/simulation/conditions.h"
#include "tests/simulation/node.h"
#include "tests/simulation/truth.h"

namespace popgate::simulation {

class WrongStamps {
 public:
  using Nodes = std::vector<std::unique_ptr<Node>>;
  /// After a disturbance, peers hear each other within this (mesh_context.h), and know each other's clocks.
  static constexpr microseconds kHeardAgain{5'000'000};
  /// In a ring, on a busy machine.
  static constexpr microseconds kInRingMax{250'000};

  WrongStamps(World& world, const Conditions& conditions, const Nodes& nodes, Truth& truth)
      : world_(world), conditions_(conditions), nodes_(nodes), truth_(truth) {}

  /// A worker made it there now.
  void hit(Node& node, const Rule& rule, const Key& key);
  /// After each turn of a daemon's loop.
  void turn(Node& node);
  /// Whether, within this, its clock was off and it could not tell.
  [[nodiscard]] bool was_blind_within(Node& node, microseconds duration) const;
  [[nodiscard]] std::uint64_t excused() const { return excused_; }
  [[nodiscard]] std::uint64_t refused() const { return made_ - excused_; }

 private:
  struct Hit {
    ModelInstant at;
    Key key;
    microseconds slot_length;
    SlotIndex slot;
    std::uint64_t hits;
  };
  struct State {
    std::vector<Hit> not_excused;
    ModelInstant last_turn{};
    std::optional<ModelInstant> blind_at;
  };
  [[nodiscard]] bool can_tell(const Node& node) const;
  void excuse(State& state, ModelInstant since);

  World& world_;
  const Conditions& conditions_;
  const Nodes& nodes_;
  Truth& truth_;
  std::map<HostNumber, State> states_;
  std::uint64_t made_ = 0;
  std::uint64_t excused_ = 0;
};

}  // namespace popgate::simulation
