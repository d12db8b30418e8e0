// SPDX-License-Identifier: Apache-2.0
//
// The exact sliding log of one key: every hit with its time, and how many lie in the trailing window (now - W, now].
//
// It is the reference against which the slots' bracket and estimate are judged, so it is the plainest thing that can be
// right: nothing is rounded, merged or estimated.
//
// Threads: one thread.
// Invariants: 1. Times never go back from call to call.
//             2. A hit at `t` counts from `t` on and no longer at `t + W`.
// Limits: 16 bytes for each hit in the window.
#pragma once

#include <cstdint>
#include <vector>

#include "libclient/instant.h"

namespace popgate {

class ExactCount {
 public:
  ExactCount(microseconds window, std::uint64_t limit) : window_(window), limit_(limit) {}

  void add(PopInstant now, std::uint64_t cost);
  /// Cost of the hits in (now - W, now].
  [[nodiscard]] std::uint64_t count(PopInstant now);
  /// Whether the count was above the limit at any instant of [since, now].
  [[nodiscard]] bool exceeded_since(PopInstant since, PopInstant now);
  /// The earliest instant, from `now` on, at which the count is at most `level` if nothing more is added.
  [[nodiscard]] PopInstant falls_to(std::uint64_t level, PopInstant now);
  /// True when neither a hit in the window nor what exceeded_since(since) remembers would be lost with this object.
  [[nodiscard]] bool is_idle(PopInstant since, PopInstant now) {
    return count(now) == 0 && !exceeded_since(since, now);
  }

 private:
  struct Hit {
    PopInstant time;
    std::uint64_t cost;
  };
  void expire(PopInstant now);

  microseconds window_;
  std::uint64_t limit_;
  std::vector<Hit> hits_;  // ascending; those before oldest_ have left the window
  std::size_t oldest_ = 0;
  std::uint64_t sum_ = 0;
  PopInstant exceeded_until_ = PopInstant::min();  // until when the count was above the limit, of what has expired
};

}  // namespace popgate
