// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before the next attempt: doubling up to a bound, each wait drawn at random from its upper half, so
// that nodes that lost a peer at the same instant do not come back at the same instant.
//
// Threads: values.
// Limits: between `first` / 2 and `longest`.
#pragma once

#include <random>

#include "libclient/instant.h"

namespace popgate {

class Backoff {
 public:
  Backoff(microseconds first, microseconds longest) : first_(first), longest_(longest), next_(first) {}

  [[nodiscard]] microseconds next(std::mt19937_64& random);
  /// The next wait is a first one again.
  void reset() { next_ = first_; }

 private:
  microseconds first_;
  microseconds longest_;
  microseconds next_;
};

}  // namespace popgate
