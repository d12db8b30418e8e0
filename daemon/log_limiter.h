// SPDX-License-Identifier: Apache-2.0
//
// Lets a burst of log lines about one thing pass, then one in a while: what others can trigger must not fill the disk.
//
// Threads: one thread at a time.
// Limits: kBurst lines, then one each kInterval: kLinesInAMinuteMax in any minute, however often it is asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "libclient/instant.h"

namespace popgate {

class LogLimiter {
 public:
  static constexpr unsigned kBurst = 5;
  static constexpr std::chrono::seconds kInterval{10};
  static constexpr unsigned kLinesInAMinuteMax = kBurst + 60 / kInterval.count();

  [[nodiscard]] bool allow(HostInstant now) {
    while (now - last_ >= kInterval && lines_ > 0) {
      last_ += kInterval;
      --lines_;
    }
    if (lines_ == 0) last_ = now;
    if (lines_ >= kBurst) {
      ++withheld_;
      return false;
    }
    ++lines_;
    return true;
  }
  /// Lines that were not let through since the last call.
  [[nodiscard]] std::uint64_t take_withheld() { return std::exchange(withheld_, 0); }
  /// The same for the end of a line: " (3 such lines withheld before)", or nothing.
  [[nodiscard]] std::string withheld_text() {
    const std::uint64_t lines = take_withheld();
    return lines == 0 ? "" : " (" + std::to_string(lines) + " such lines withheld before)";
  }

 private:
  HostInstant last_{};
  unsigned lines_ = 0;
  std::uint64_t withheld_ = 0;
};

}  // namespace popgate
