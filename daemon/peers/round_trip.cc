// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/round_trip.h"

#include <algorithm>

namespace popgate {

std::optional<RoundTrip::Sample> RoundTrip::quickest() const {
  if (added_ == 0) return std::nullopt;
  const auto end = samples_.begin() + static_cast<std::ptrdiff_t>(std::min(added_, kRoundTripSamples));
  return *std::min_element(samples_.begin(), end, [](const Sample& a, const Sample& b) { return a.rtt < b.rtt; });
}

}  // namespace popgate
