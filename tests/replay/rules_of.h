// SPDX-License-Identifier: Apache-2.0
//
// Rules for the replay's tests, without a configuration file.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/rules.h"

namespace popgate {

/// Counts every request by client address; k = 6, D = 0 unless changed.
inline Rule client_rule(std::string name, RuleNumber number, std::uint64_t limit, microseconds window,
                        milliseconds mitigate) {
  Rule rule;
  rule.name = std::move(name);
  rule.number = number;
  rule.key.push_back({});
  rule.limit = limit;
  rule.window = WindowShape::make(window, 6, microseconds(0));
  rule.mitigate = mitigate;
  return rule;
}

inline SharedRules rules_of(std::vector<Rule> rules) {
  for (Rule& rule : rules) identify(rule);
  return std::make_shared<const RuleSet>(std::move(rules));
}

}  // namespace popgate
