// SPDX-License-Identifier: Apache-2.0
//
// What an automatic entry means under this node's rules of today: every entry is replicated, but each node enforces it
// by its own rules, so that a raised limit or a deleted rule takes effect on what was decided before.
//
//     rule unknown, gone or disabled    not enforced (kept and passed on)
//     same revision                     as decided
//     another revision                  judged again: the evidence against the new limit, the new duration counted from
//                                       the decision; never longer than decided
//
// What was decided without counters against this node's share of a limit (DecidedUnder::kLocal) is held against the
// whole new limit then, because nobody knows the share any more: it mostly ends.
//
// Under a rule that became a throttle (`mitigate: 0`) the new duration is the window: by then its estimate has fallen.
//
// Threads: pure functions.
#pragma once

#include <optional>

#include "daemon/mitigate/mitigation.h"

namespace popgate {

struct Applied {
  RuleNumber rule = 0;
  HostInstant until{};
  bool log_only = false;
  friend bool operator==(const Applied&, const Applied&) = default;
};

/// `rules` may be null: no rule is known yet. The result may have ended already.
[[nodiscard]] std::optional<Applied> apply_rules(const Mitigation& automatic, const RuleSet* rules);

}  // namespace popgate
