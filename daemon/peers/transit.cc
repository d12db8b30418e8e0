// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/transit.h"

#include <algorithm>

namespace popgate {

microseconds Transit::delay(HostInstant sent_by_their_clock, HostInstant received_by_ours) {
  const microseconds difference = received_by_ours.time_since_epoch() - sent_by_their_clock.time_since_epoch();
  if (++messages_ > kTransitMessages) {
    messages_ = 1;
    smallest_before_ = smallest_now_;
    smallest_now_ = microseconds::max();
  }
  smallest_now_ = std::min(smallest_now_, difference);
  return difference - std::min(smallest_now_, smallest_before_);
}

}  // namespace popgate
