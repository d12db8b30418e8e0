// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditions.h"

#include <algorithm>

namespace popgate::simulation {

std::optional<ModelInstant> Conditions::clean_since(HostNumber a, HostNumber b) const {
  ModelInstant latest{};
  const auto add = [&](const auto& states, const auto& key) {
    const auto found = states.find(key);
    if (found == states.end()) return true;
    latest = std::max(latest, found->second.ended);
    return found->second.faults == 0;
  };
  const bool clean = add(between_, pair_of(a, b)) && add(of_host_, a) && add(of_host_, b);
  return clean ? std::optional(latest) : std::nullopt;
}

}  // namespace popgate::simulation
