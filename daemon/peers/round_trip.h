// SPDX-License-Identifier: Apache-2.0
//
// Round-trip time to a peer, and what its wall clock shows: of the last few exchanges the quickest, because what made
// it quick also leaves the least doubt about when the peer read its clock.
//
// The peer's wall clock is kept against this host's boot-time clock, which nobody steps. So when this node's own wall
// clock is stepped, its skew to every peer is known at once, and not when the exchanges of before are forgotten.
//
// Threads: values.
// Limits: kRoundTripSamples exchanges: two seconds of heartbeats.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "libclient/instant.h"

namespace popgate {

inline constexpr std::size_t kRoundTripSamples = 8;

class RoundTrip {
 public:
  struct Sample {
    microseconds rtt{0};
    microseconds their_wall{0};  // the peer's wall clock less our boot-time clock; right to half the round-trip time
    /// The peer's wall clock less ours.
    [[nodiscard]] microseconds skew(HostInstant now, PopInstant wall) const {
      return their_wall - (wall.time_since_epoch() - now.time_since_epoch());
    }
  };
  void add(const Sample& sample) { samples_[added_++ % kRoundTripSamples] = sample; }
  [[nodiscard]] std::optional<Sample> quickest() const;

 private:
  std::array<Sample, kRoundTripSamples> samples_{};
  std::size_t added_ = 0;
};

}  // namespace popgate
