// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/conditions.h"

#include <algorithm>

namespace popgate::simulation {

std::optional<ModelInstant> Conditions::clean_since(HostNumber a, HostNumber b) const {
  const auto ways = ways_clean_since(a, b);
  const auto daemon = clean_since(of_daemon_, a);
  return ways && daemon ? std::optional(std::max(*ways, *daemon)) : std::nullopt;
}

std::optional<ModelInstant> Conditions::ways_clean_since(HostNumber from, HostNumber to) const {
  ModelInstant latest{};
  for (const auto& since : {clean_since(between_, pair_of(from, to)), clean_since(of_host_, from),
                            clean_since(of_host_, to), clean_since(of_daemon_, to)}) {
    if (!since) return std::nullopt;
    latest = std::max(latest, *since);
  }
  return latest;
}

}  // namespace popgate::simulation
