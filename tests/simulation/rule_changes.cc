// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/rule_changes.h"

#include <algorithm>
#include <utility>

namespace popgate::simulation {

std::string RuleChanges::make() {
  now_.rules = pop_.rules();
  Configured next = now_;
  std::string what;
  if (before_ && chance(random_, 0.2)) {
    next = *std::exchange(before_, std::nullopt);
    what = "the last change of rules is taken back";
  } else {
    before_ = now_;
    std::vector<Rule> rules = next.rules.all();
    what = change(rules[static_cast<std::size_t>(draw(random_, 0, rules.size() - 1))], next);
    next.rules = RuleSet(std::move(rules));
  }
  const microseconds spread = chance(random_, 0.5) ? microseconds(0) : draw(random_, microseconds(0), kSpreadMax);
  now_ = std::move(next);
  pop_.use_rules(now_.rules, now_.deleted, spread);
  return what + ", within " + std::to_string(spread.count() / 1000) + " ms";
}

std::string RuleChanges::change(Rule& rule, Configured& next) {
  const auto what = static_cast<Change>(draw(random_, 0, static_cast<std::uint64_t>(Change::kCount) - 1));
  std::string text = "rule " + rule.name + " ";
  if (next.deleted.erase(rule.id) > 0) {
    text += "is there again";
  } else if (what == Change::kDelete) {
    next.deleted.insert(rule.id);
    text += "is deleted";
  } else {
    text += alter(rule, what);
  }
  identify(rule);
  return text;
}

std::string RuleChanges::alter(Rule& rule, Change what) {
  constexpr milliseconds kMitigate[] = {milliseconds(0), milliseconds(700), milliseconds(3000), milliseconds(20000)};
  switch (what) {
    case Change::kRaise:
      rule.limit = std::min(draw(random_, rule.limit + 1, rule.limit * 4), kLimitMax);
      return "has the limit " + std::to_string(rule.limit);
    case Change::kLower:
      rule.limit = std::max<std::uint64_t>(draw(random_, rule.limit / 3, rule.limit), 5);
      return "has the limit " + std::to_string(rule.limit);
    case Change::kEnable:
      rule.enabled = !rule.enabled;
      return rule.enabled ? "is enabled" : "is disabled";
    case Change::kAction:
      rule.action = rule.action == Action::kBlock ? Action::kLog : Action::kBlock;
      return rule.action == Action::kLog ? "only logs" : "blocks";
    case Change::kWindow:
      rule.window = WindowShape::make(milliseconds(draw(random_, 15, 70) * 100), kSlotsDefault, Pop::kTolerance);
      return "has a window of " + std::to_string(rule.window.window.count()) + " us";
    case Change::kMitigate:
      rule.mitigate = kMitigate[draw(random_, 0, 3)];
      return "mitigates for " + std::to_string(rule.mitigate.count()) + " ms";
    case Change::kPolicy:
    case Change::kDelete:
    case Change::kCount:
      rule.policy = static_cast<Policy>(draw(random_, 0, 2));
      return "has the policy " + std::string(policy_name(rule.policy));
  }
  return {};
}

}  // namespace popgate::simulation
