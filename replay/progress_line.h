// SPDX-License-Identifier: Apache-2.0
//
// A line on the terminal that says how far a replay is; nothing where standard error is no terminal.
//
// Threads: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "libclient/instant.h"

namespace popgate {

class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Shown at most ten times a second.
  void show(std::uint64_t requests, const std::string& where);
  void clear();

 private:
  bool shown_ = false;
  bool wanted_;
  HostInstant next_{};
};

}  // namespace popgate
