// SPDX-License-Identifier: Apache-2.0
//
// A live replay: one worker process for each daemon, paced by the plan; an exact judgement of what the daemons did, on
// the times at which requests were really sent.
//
// Windows run in real time, and so does the exact count. Decisions cannot be seen from outside; the first block of a
// key stands for its decision, so that `lag` is kLiveLag here.
//
// Threads: the caller's; it must be the process's only one, because workers are forked.
// Invariants: 1. When it returns, no worker runs any more, also after SIGINT or SIGTERM.
// Limits: attach_timeout + the plan's length + kSettleTime + kGraceTime; then workers are killed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "replay/live_plan.h"
#include "replay/report.h"
#include "replay/rule_matcher.h"

namespace popgate {

inline constexpr std::chrono::seconds kLiveLag{1};
inline constexpr std::chrono::seconds kGraceTime{10};

struct LiveOptions {
  std::vector<std::string> sockets;                     // one worker process each
  std::function<void(std::uint64_t sent)> on_progress;  // about ten times a second
  microseconds attach_timeout = std::chrono::seconds(10);
};

/// An error when a worker cannot attach to its daemon or dies.
[[nodiscard]] Result<Report> run_live(const LivePlan& plan, const RuleMatcher& matcher, const LiveOptions& options);

}  // namespace popgate
