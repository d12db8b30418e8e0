// SPDX-License-Identifier: Apache-2.0
#include "daemon/backoff.h"

#include <algorithm>

namespace popgate {

microseconds Backoff::next(std::mt19937_64& random) {
  const microseconds wait = std::min(next_, longest_);
  next_ = std::min(next_ * 2, longest_);
  std::uniform_int_distribution<std::int64_t> drawn(wait.count() / 2, wait.count());
  return microseconds(drawn(random));
}

}  // namespace popgate
