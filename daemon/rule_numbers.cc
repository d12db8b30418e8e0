// SPDX-License-Identifier: Apache-2.0
#include "daemon/rule_numbers.h"

#include <string>

namespace popgate {
namespace {

// Frees the rows that no configured rule, no hit under way and no mitigation needs.
void release_unused(const RuleSet& rules, Ledger& ledger, const std::unordered_set<RuleId>& referred_to) {
  for (const RuleNumber number : ledger.rows()) {
    const LedgerRow row = ledger.row(number);
    if (rules.by_id(row.rule) == nullptr && row.pending() == 0 && !referred_to.contains(row.rule))
      ledger.release(number);
  }
}

}  // namespace

Result<RuleSet> number_rules(const RuleSet& rules, Ledger& ledger,
                             const std::function<std::unordered_set<RuleId>()>& referred_to) {
  std::vector<Rule> numbered = rules.all();
  bool released = false;
  for (Rule& rule : numbered) {
    std::optional<RuleNumber> number = ledger.number_for(rule.id);
    if (!number && !released) {
      release_unused(rules, ledger, referred_to());
      released = true;
      number = ledger.number_for(rule.id);
    }
    if (!number) {
      return Error{"rule " + rule.name + ": the ledger has no number left for it (" + std::to_string(numbered.size()) +
                   " rules wanted, " + std::to_string(kRuleNumbersMax - 1) + " allowed, or its file cannot grow)"};
    }
    rule.number = *number;
  }
  return RuleSet(std::move(numbered));
}

}  // namespace popgate
