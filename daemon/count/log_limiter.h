// SPDX-License-Identifier: Apache-2.0
//
// Lets a burst of log lines about one thing pass, then one in a while: what others can trigger must not fill the disk.
//
// Threads: one thread at a time.
// Limits: kBurst lines, then one each kInterval.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "libclient/instant.h"

namespace popgate {

class LogLimiter {
 public:
  static constexpr unsigned kBurst = 5;
  static constexpr std::chrono::seconds kInterval{10};

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

 private:
  HostInstant last_{};
  unsigned lines_ = 0;
  std::uint64_t withheld_ = 0;
};

}  // namespace popgate
