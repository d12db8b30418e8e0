// SPDX-License-Identifier: Apache-2.0
//
// What operators order about blocking: off and on, for everything or one rule, for a node or for the PoP, at any node,
// also against each other.
//
// Threads: one.
#pragma once

#include <string>

#include "tests/simulation/brake_check.h"

namespace popgate::simulation {

class BrakeOrders {
 public:
  BrakeOrders(Pop& pop, BrakeCheck& check, Random& random) : pop_(pop), check_(check), random_(random) {}
  /// Draws an order for this node; says which.
  [[nodiscard]] Brakes::Order draw_for(Node& node);
  /// Gives it soon, if a daemon is there to take it.
  void give(Node& node, const Brakes::Order& order);
  [[nodiscard]] static std::string text_of(const Node& node, const Brakes::Order& order);

 private:
  Pop& pop_;
  BrakeCheck& check_;
  Random& random_;
};

}  // namespace popgate::simulation
