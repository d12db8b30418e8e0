// SPDX-License-Identifier: Apache-2.0
//
// Reads the configuration again while the daemon runs: the file is read and the rules are compiled on a thread,
// numbered and applied on the loop. A file with any fault changes nothing.
//
// Threads: the event loop's.
// Invariants: 1. Nothing has changed unless every step that can fail has succeeded.
//             2. Who asks while a reload runs gets another one that starts after it, because the file may have changed.
// Limits: kReloadsWaitingMax who wait for the next reload; more are refused.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/background_task.h"
#include "daemon/config.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kReloadsWaitingMax = 16;

class RulesReload {
 public:
  struct Outcome {
    std::size_t rules = 0;
    std::uint64_t revision = 0;
    std::vector<std::string> needs_restart;  // options that changed and only count after a restart
    std::vector<std::string> faults;         // not empty: nothing has changed
  };
  using DoneFunction = std::function<void(const Outcome&)>;
  /// What the daemon does on the loop, in this order.
  struct Steps {
    std::function<Result<SharedRules>(const RuleSet&)> number;
    /// `wanted.secrets` are those that the block was compiled under.
    std::function<Status(const Config& wanted, const SharedRules&, const std::vector<std::byte>& block)> apply;
  };

  /// `running`: its file is read, and its secrets are kept when the file's are strange to it. Outlives the reload.
  RulesReload(const EventLoop& loop, const Config& running, Steps steps);

  void begin(DoneFunction done);

 private:
  void start();
  void loaded();
  void compiled();
  void conclude(Outcome outcome);

  const Config& running_;
  Steps steps_;
  std::vector<DoneFunction> asked_;    // of the reload that runs
  std::vector<DoneFunction> waiting_;  // for the next
  ConfigOutcome loaded_;
  std::vector<std::string> needs_restart_;
  SharedRules rules_;
  std::vector<std::byte> block_;
  BackgroundTask task_;  // last: its thread uses what stands above
};

}  // namespace popgate
