// SPDX-License-Identifier: Apache-2.0
//
// The rules of a replay, numbered, compiled and ready to match, as a worker has them mapped.
//
// Threads: const; one thread at a time for match().
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/rules.h"
#include "libclient/match/matcher.h"
#include "libclient/match/rules_view.h"
#include "replay/logged_request.h"

namespace popgate {

class RuleMatcher {
 public:
  /// Gives the rules the numbers that a fresh ledger gives them.
  RuleMatcher(std::vector<Rule> rules, const HashSecret& secret);
  RuleMatcher(const RuleMatcher&) = delete;
  RuleMatcher& operator=(const RuleMatcher&) = delete;

  [[nodiscard]] const SharedRules& rules() const { return rules_; }
  void find(const LoggedRequest& logged, Matches& out) const { match(view_, request_of(logged), out); }

 private:
  SharedRules rules_;
  std::vector<std::byte> compiled_;
  RulesView view_;
};

}  // namespace popgate
