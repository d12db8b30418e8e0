// SPDX-License-Identifier: Apache-2.0
#include "replay/rule_matcher.h"

#include "daemon/collect/ledger.h"
#include "daemon/result.h"

namespace popgate {
namespace {

SharedRules numbered(std::vector<Rule> rules) {
  const std::unique_ptr<Ledger> ledger = Ledger::in_memory();
  for (Rule& rule : rules) {
    const auto number = ledger->number_for(rule.id);
    POPGATE_ASSERT(number.has_value());  // a configuration has fewer rules than a ledger has rows
    rule.number = *number;
  }
  return std::make_shared<const RuleSet>(std::move(rules));
}

}  // namespace

RuleMatcher::RuleMatcher(std::vector<Rule> rules, const HashSecret& secret)
    : rules_(numbered(std::move(rules))), compiled_(compile_rules(*rules_, secret, {})) {
  const char* reason = "";
  POPGATE_ASSERT(view_.open(compiled_, reason));
}

}  // namespace popgate
