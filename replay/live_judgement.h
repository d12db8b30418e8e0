// SPDX-License-Identifier: Apache-2.0
//
// Judges a finished live run: all results and all sights of a block, in the order of their times, through the oracle.
//
// Threads: the parent's, after the workers have ended.
#pragma once

#include "replay/live_memory.h"
#include "replay/live_plan.h"
#include "replay/report.h"
#include "replay/rule_matcher.h"

namespace popgate {

[[nodiscard]] Report judge_live_run(const LivePlan& plan, const RuleMatcher& matcher, LiveMemory& memory,
                                    unsigned workers);

}  // namespace popgate
