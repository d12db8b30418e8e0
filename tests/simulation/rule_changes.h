// SPDX-License-Identifier: Apache-2.0
//
// What an operator does to rules in the configuration: raises and lowers limits, deletes a rule and brings it back,
// disables it, lets it only log, gives it another window, duration or policy, and takes the last change back. The new
// configuration comes to the nodes at once or one after the other.
//
// Threads: one.
// Limits: kLimitMax, so that a client can still be over it.
#pragma once

#include <set>
#include <string>

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class RuleChanges {
 public:
  static constexpr std::uint64_t kLimitMax = 240;
  /// How much later than the first the last node is given a new configuration.
  static constexpr microseconds kSpreadMax{2'000'000};

  RuleChanges(Pop& pop, Random& random) : pop_(pop), random_(random) {}
  /// Makes one change; says which.
  [[nodiscard]] std::string make();

 private:
  enum class Change : std::uint8_t { kRaise, kLower, kDelete, kEnable, kAction, kWindow, kMitigate, kPolicy, kCount };
  struct Configured {
    RuleSet rules;
    std::set<RuleId> deleted;
  };

  [[nodiscard]] std::string change(Rule& rule, Configured& next);
  [[nodiscard]] std::string alter(Rule& rule, Change what);

  Pop& pop_;
  Random& random_;
  Configured now_{};
  std::optional<Configured> before_;  // the last change
};

}  // namespace popgate::simulation
