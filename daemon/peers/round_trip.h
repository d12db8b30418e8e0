// SPDX-License-Identifier: Apache-2.0
//
// Round-trip time to a peer, and how far its wall clock is from ours: of the last few exchanges the quickest, because
// what made it quick also leaves the least doubt about when the peer read its clock.
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
    microseconds skew{0};  // the peer's wall clock less ours; right to half the round-trip time
  };
  void add(const Sample& sample) { samples_[added_++ % kRoundTripSamples] = sample; }
  [[nodiscard]] std::optional<Sample> quickest() const;

 private:
  std::array<Sample, kRoundTripSamples> samples_{};
  std::size_t added_ = 0;
};

}  // namespace popgate
