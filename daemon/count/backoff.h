// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before the next attempt: doubling, bounded, and jittered so that the nodes of a PoP that lost the
// same shard in the same instant do not all come back in the same instant.
//
// Threads: one thread at a time.
// Limits: between half of kFirst and kLongest.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace popgate {

class Backoff {
 public:
  static constexpr std::chrono::microseconds kFirst{20'000};
  static constexpr std::chrono::microseconds kLongest{2'000'000};

  explicit Backoff(std::mt19937_64& random) : random_(random) {}

  [[nodiscard]] std::chrono::microseconds next() {
    const std::chrono::microseconds longest = next_;
    next_ = std::min(next_ * 2, kLongest);
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::int64_t>(longest.count() / 2, longest.count())(random_));
  }
  void reset() { next_ = kFirst; }

 private:
  std::mt19937_64& random_;
  std::chrono::microseconds next_ = kFirst;
};

}  // namespace popgate
