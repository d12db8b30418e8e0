// SPDX-License-Identifier: Apache-2.0
//
// One worker process of a live replay: sends its share of the plan through libclient into one daemon, as an edge
// proxy's worker would, and in between looks whether the keys that crossed their limit are blocked here.
//
// Threads: the only thread of a forked process.
// Limits: kWatchedAtOnce keys looked at each millisecond.
#pragma once

#include <chrono>
#include <string>

#include "daemon/rules.h"
#include "replay/live_memory.h"
#include "replay/live_plan.h"

namespace popgate {

inline constexpr std::chrono::seconds kWatchTimeout{10};  // a key that is not blocked by then is given up
inline constexpr std::chrono::seconds kSettleTime{2};     // looked on after the last request, while any key is watched
inline constexpr std::size_t kWatchedAtOnce = 1024;

struct LiveWorkerSetup {
  const LivePlan& plan;
  const RuleSet& rules;
  LiveMemory& memory;
  unsigned index = 0;
  std::string socket;
  microseconds attach_timeout{0};  // for the daemon to appear
};

/// Returns the process's exit status.
[[nodiscard]] int run_live_worker(const LiveWorkerSetup& setup);

}  // namespace popgate
