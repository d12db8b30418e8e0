// SPDX-License-Identifier: Apache-2.0
//
// The two clocks of Popgate, as two types that do not mix.
//
// HostInstant is CLOCK_BOOTTIME: it only goes forward, goes on while the host sleeps, and means nothing on another
// machine. Mitigations end by it, so that a wrong wall clock cannot lengthen a block.
// PopInstant is the wall clock: it is shared by the whole PoP and may step. It only ever numbers slots and is shown to
// people.
//
// Pure code takes its instants as parameters; only the edges of a process read a clock.
//
// Threads: everything here may be called from any thread.
// Cost: reading a clock is a vDSO call and not a system call, on Linux 5.3 and later with a clock source that user
//       space can read (on x86: tsc).
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace popgate {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct HostClock {
  using duration = microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<HostClock>;
  static constexpr bool is_steady = true;
  [[nodiscard]] static time_point now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);  // 17 ns; there is no coarse CLOCK_BOOTTIME
    return time_point(std::chrono::seconds(t.tv_sec) + microseconds(t.tv_nsec / 1000));
  }
};

struct PopClock {
  using duration = microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<PopClock>;
  static constexpr bool is_steady = false;
  /// Coarse: up to one kernel tick (4 ms at 250 Hz) behind, at a quarter of the price (4 ns against 17 ns). The slots'
  /// clock tolerance covers the difference.
  [[nodiscard]] static time_point now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + microseconds(t.tv_nsec / 1000));
  }
};

using HostInstant = HostClock::time_point;
using PopInstant = PopClock::time_point;

}  // namespace popgate
