// SPDX-License-Identifier: Apache-2.0
//
// popgate-replay's command line.
//
// Threads: values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/live_plan.h"
#include "replay/log_merge.h"
#include "replay/replayer.h"
#include "replay/traffic.h"

namespace popgate {

enum class ReplayTask : std::uint8_t { kOffline, kLive, kStatistics, kGenerate };

struct CommandLine {
  ReplayTask task = ReplayTask::kOffline;
  std::vector<std::string> logs;
  bool synthetic = false;  // traffic instead of logs
  bool json = false;
  bool quiet = false;
  bool spread_seconds = true;
  std::string config_file;
  std::vector<std::string> quick_rules;  // LIMIT/WINDOW[/MITIGATE]
  std::vector<std::string> sockets;
  std::optional<microseconds> flush_interval;
  MergeOptions merge;
  TrafficOptions traffic;
  ReplayOptions replay;
  PlanOptions plan;
};

/// Empty when the process is to end with `status` (help, version, or a mistake that was told on stderr).
[[nodiscard]] std::optional<CommandLine> read_command_line(int argc, char** argv, int& status);

}  // namespace popgate
