// SPDX-License-Identifier: Apache-2.0
//
// Rules, instants and evidence that the tests of mitigations share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/mitigate/mitigations.h"

namespace popgate {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr HostInstant kHostNow{hours(1)};
inline constexpr PopInstant kWallNow{hours(480000)};  // 2024
inline constexpr Key kClient{0x0123456789abcdef, 0xfedcba9876543210};

inline Rule sample_rule(RuleId id = 7, std::uint64_t limit = 100) {
  Rule rule;
  rule.name = "login" + std::to_string(id);
  rule.id = id;
  rule.revision = 1000 + limit;
  rule.number = static_cast<RuleNumber>(id);
  rule.limit = limit;
  rule.window = WindowShape::make(minutes(1), 6, milliseconds(20));
  rule.mitigate = minutes(10);
  return rule;
}

inline SharedRules sample_rules(std::vector<Rule> rules) { return std::make_shared<const RuleSet>(std::move(rules)); }

inline Evidence sample_evidence(double estimate = 101) {
  return {static_cast<std::uint64_t>(estimate), estimate, static_cast<std::uint64_t>(estimate) + 1, 100};
}

}  // namespace popgate
