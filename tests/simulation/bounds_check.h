// SPDX-License-Identifier: Apache-2.0
//
// Promise 9: what each stage holds, against the bound that ARCHITECTURE.md names for it.
//
//     at every turn   sums between two flushes, keys whose windows are held, entries of the table, keys that wait for
//                     room there, orders about blocking, and the most that ever waited for peers since the daemon
//                     started
//     now and then    entries of the set by kind, records, entries that wait for the record file
//
// Drawn small in some runs, so that they are reached: keys_max, table_entries, batch_keys_max, batches_in_flight, and
// what may wait for a peer. The others are constants of the stages that a run of seconds does not come near. That a
// flood of new clients evicts no live mitigation is RetractCheck's; what is counted at a bound is in the accounts.
//
// Threads: one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class BoundsCheck {
 public:
  static constexpr std::uint64_t kTurnsBetweenFigures = 256;

  explicit BoundsCheck(Pop& pop) : pop_(pop) {}
  /// After each turn of a daemon's loop.
  void turn(Node& node);
  /// Bounds that were reached on some node.
  [[nodiscard]] std::size_t reached() const { return reached_.size(); }

 private:
  void look_at_figures(Node& node);
  /// `held` may be as much as `bound`.
  void hold(Node& node, std::string_view what, std::size_t held, std::size_t bound);

  Pop& pop_;
  std::map<HostNumber, std::uint64_t> turns_;
  std::set<std::string, std::less<>> reached_;
};

}  // namespace popgate::simulation
