// SPDX-License-Identifier: Apache-2.0
//
// A wall clock that a test steps, for the processes that it starts with it: Debian's libfaketime, preloaded, reads the
// offset from a file at every look at the clock. CLOCK_BOOTTIME and CLOCK_MONOTONIC stay true, as when an operator or
// NTP steps the clock of a host.
//
// Threads: one thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace popgate::process {

class SteppedClock {
 public:
  /// Keeps its file in the folder; shows the true time at first.
  explicit SteppedClock(const std::filesystem::path& folder) : file_(folder / "clock") { step_to({}); }

  /// So far ahead of the true time (behind, when negative) from now on.
  void step_to(std::chrono::seconds ahead);
  /// What goes into ChildProcess::Options::environment.
  [[nodiscard]] std::vector<std::string> environment() const;
  /// What the library left in /dev/shm for a process that was killed.
  static void remove_leftovers(pid_t ended);
  /// Where Debian has the library; empty when it is not installed.
  [[nodiscard]] static std::filesystem::path library();

 private:
  std::filesystem::path file_;
};

}  // namespace popgate::process
