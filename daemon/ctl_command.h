// SPDX-License-Identifier: Apache-2.0
//
// popgatectl's command line: what to ask the daemon, and how to show the answer.
//
// Threads: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/ctl_exchange.h"

namespace popgate {

/// As --help says.
enum CtlExit : int { kCtlDone = 0, kCtlRefused = 1, kCtlUsage = 2, kCtlUnreachable = 3 };

struct CtlCommand {
  std::string name;    // "status", …
  std::string called;  // program and socket, as they would be typed again
  std::string socket_path;
  std::chrono::milliseconds timeout{30'000};
  bool json = false;
  bool quiet = false;
  std::chrono::milliseconds wait{0};  // of ready
  std::uint64_t offset = 0;           // of mitigations and rules
  CtlRequest request;
  std::string secret_file;  // of secret-new and secret-id, which ask no daemon
};

/// Empty when the process is to end with `exit_status`: help, version, or a mistake that was told on stderr.
[[nodiscard]] std::optional<CtlCommand> read_ctl_command(int argc, char** argv, int& exit_status);

}  // namespace popgate
