// SPDX-License-Identifier: Apache-2.0
//
// Whether a shard can be counted on: entered and left with hysteresis, so that what rules do about it does not change
// at every blip.
//
// Failing time adds up until the shard has answered steadily. So a shard that answers for an instant between two
// failures does not look well, and two short blips far apart do not look like an outage.
//
//     kFailingMax   1 s of failing. A reconnect takes up to 20 ms, a restart of memcached some 100 ms, a lost segment
//                   one time-out (400 ms): none of these is an outage. Until then the node judges by what it knows and
//                   its own hits, which a second cannot make much of.
//     kSteadyMin    3 s of answering without a failure: longer than the longest pause between two attempts (2 s), so
//                   that at least one failure would have been seen.
//
// Threads: a value.
// Invariants: 1. The state changes only within look().
#pragma once

#include <cstdint>

#include "libclient/instant.h"

namespace popgate {

class DegradedState {
 public:
  static constexpr std::chrono::seconds kFailingMax{1};
  static constexpr std::chrono::seconds kSteadyMin{3};

  /// Whether the shard answers now: at every change, and again and again while nothing changes. True when the state
  /// has changed.
  [[nodiscard]] bool look(bool answering, HostInstant now);
  [[nodiscard]] bool is_degraded() const { return degraded_; }

 private:
  bool degraded_ = false;
  bool answering_ = false;
  bool looked_ = false;
  HostInstant looked_at_{};
  HostInstant steady_since_{};  // while answering
  microseconds failed_{0};      // since it last answered steadily
};

}  // namespace popgate
