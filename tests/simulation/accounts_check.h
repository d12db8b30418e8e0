// SPDX-License-Identifier: Apache-2.0
//
// Promise 3, held against what the workers recorded and what the shards carried out.
//
//     per node and rule:  recorded = drained + waiting in the ring + dropped by the ring
//     per node:           drained - delivered - uncertain - dropped - expired - lost = what the stages hold
//     per PoP:            delivered <= carried out by the shards <= delivered + uncertain + lost + under way
//
// That nothing is counted twice is also seen counter by counter, by Truth.
//
// Threads: one.
#pragma once

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class AccountsCheck {
 public:
  explicit AccountsCheck(Pop& pop) : pop_(pop) {}
  /// After each turn of a daemon's loop: nothing else moves a hit but workers, who record into the ring.
  void look(Node& node);
  /// Across all nodes.
  void look_at_all();
  [[nodiscard]] std::uint64_t total(LedgerColumn column);

 private:
  void look_at_held(Node& node, std::uint64_t pending);

  Pop& pop_;
};

}  // namespace popgate::simulation
