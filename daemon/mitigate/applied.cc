// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/applied.h"

#include <algorithm>

#include "daemon/mitigate/judge.h"

namespace popgate {
namespace {

// The decider's wall clock gives the length only, as a difference; the end is this host's.
HostInstant decided_on_this_host(const Mitigation& m) {
  const microseconds granted = std::clamp<microseconds>(m.until_wall - m.decided_at, microseconds(0), kMitigationMax);
  return m.until - granted;
}

HostInstant end_under(const Rule& rule, const Mitigation& m) {
  const microseconds lasting = rule.mitigate.count() > 0 ? microseconds(rule.mitigate) : rule.window.window;
  return std::min(m.until, decided_on_this_host(m) + lasting);
}

}  // namespace

std::optional<Applied> apply_rules(const Mitigation& automatic, const RuleSet* rules) {
  const Rule* rule = rules == nullptr ? nullptr : rules->by_id(automatic.rule);
  if (rule == nullptr || !rule->enabled) return std::nullopt;
  const bool log_only = rule->action == Action::kLog;
  if (rule->revision == automatic.rule_revision) return Applied{rule->number, automatic.until, log_only};

  const Rate evidence{automatic.evidence.lo, automatic.evidence.estimate, automatic.evidence.hi};
  if (!is_over(*rule, evidence)) return std::nullopt;
  return Applied{rule->number, end_under(*rule, automatic), log_only};
}

}  // namespace popgate
