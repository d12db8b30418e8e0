// SPDX-License-Identifier: Apache-2.0
#include "replay/second_spread.h"

#include <algorithm>

namespace popgate {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

bool is_whole(PopInstant time) { return time.time_since_epoch().count() % kSecondUs == 0; }

}  // namespace

void SecondSpread::gather() {
  if (!has_begun_) has_ahead_ = source_.next(ahead_);
  has_begun_ = true;
  if (!has_ahead_) return;
  const PopInstant second = ahead_.time;
  do {
    second_.push_back(std::move(ahead_));
    has_ahead_ = source_.next(ahead_);
  } while (has_ahead_ && is_whole(second) && ahead_.time == second && second_.size() < kSpreadMax);
  if (second_.size() == 1) return;
  const auto count = static_cast<std::int64_t>(second_.size());
  for (std::int64_t i = 0; i < count; ++i) {
    second_[static_cast<std::size_t>(i)].time += microseconds(i * kSecondUs / count);
  }
}

bool SecondSpread::next(LoggedRequest& out) {
  if (second_.empty()) gather();
  if (second_.empty()) return false;
  out = std::move(second_.front());
  second_.pop_front();
  // Only after more than kSpreadMax in a second, or fractions among whole seconds, is a request older than the last.
  out.time = std::max(out.time, given_);
  given_ = out.time;
  return true;
}

}  // namespace popgate
