// SPDX-License-Identifier: Apache-2.0
//
// How much longer than the fastest one a message was under way, from two clocks that share nothing but their speed.
//
// Every message carries its sender's CLOCK_BOOTTIME. Receipt minus sending is the difference of the two clocks plus the
// time under way; the smallest ever seen is the difference plus the fastest way. What a message is above that, it was
// held up: in a full buffer, by a stopped process, by a suspended host. A remaining duration is shortened by it, so
// that a late copy of an entry does not live longer; no wall clock takes part.
//
// Threads: values.
// Invariants: 1. The delay is never negative.
// Limits: the smallest difference of the last kTransitMessages to twice as many messages counts, so that the drift of
//         two clocks (some 50 us a second at most) is followed within minutes.
#pragma once

#include <cstdint>

#include "libclient/instant.h"

namespace popgate {

inline constexpr std::uint32_t kTransitMessages = 2048;  // about 8 minutes of heartbeats

class Transit {
 public:
  /// The delay of a message beyond the fastest.
  [[nodiscard]] microseconds delay(HostInstant sent_by_their_clock, HostInstant received_by_ours);

 private:
  microseconds smallest_now_ = microseconds::max();
  microseconds smallest_before_ = microseconds::max();
  std::uint32_t messages_ = 0;
};

}  // namespace popgate
