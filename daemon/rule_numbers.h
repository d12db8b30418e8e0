// SPDX-License-Identifier: Apache-2.0
//
// Gives every rule of a configuration the number that the ledger keeps for its name.
//
// Numbers outlive configurations and daemons, because rings, ledger and table carry them: a rule that comes back gets
// its old number. Rows of rules that are gone are only freed when the ledger has no other left.
//
// Threads: the event loop's.
#pragma once

#include <functional>
#include <unordered_set>

#include "daemon/collect/ledger.h"
#include "daemon/result.h"
#include "daemon/rules.h"

namespace popgate {

/// `referred_to`: gives the rules of which a mitigation is still held; asked only when the ledger has no row left.
/// Fails when more rules are wanted than there are numbers.
[[nodiscard]] Result<RuleSet> number_rules(const RuleSet& rules, Ledger& ledger,
                                           const std::function<std::unordered_set<RuleId>()>& referred_to);

}  // namespace popgate
