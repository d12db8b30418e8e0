// SPDX-License-Identifier: Apache-2.0
#include "replay/exact_count.h"

namespace popgate {

void ExactCount::add(PopInstant now, std::uint64_t cost) {
  expire(now);
  hits_.push_back({now, cost});
  sum_ += cost;
}

std::uint64_t ExactCount::count(PopInstant now) {
  expire(now);
  return sum_;
}

bool ExactCount::exceeded_since(PopInstant since, PopInstant now) {
  expire(now);
  return sum_ > limit_ || exceeded_until_ > since;
}

PopInstant ExactCount::falls_to(std::uint64_t level, PopInstant now) {
  expire(now);
  std::uint64_t left = sum_;
  PopInstant at = now;
  for (std::size_t i = oldest_; left > level && i < hits_.size(); ++i) {
    left -= hits_[i].cost;
    at = hits_[i].time + window_;
  }
  return at;
}

void ExactCount::expire(PopInstant now) {
  while (oldest_ < hits_.size() && hits_[oldest_].time <= now - window_) {
    const bool above = sum_ > limit_;
    sum_ -= hits_[oldest_].cost;
    if (above) exceeded_until_ = hits_[oldest_].time + window_;
    ++oldest_;
  }
  if (oldest_ * 2 > hits_.size()) {  // each hit is moved at most once on average
    hits_.erase(hits_.begin(), hits_.begin() + static_cast<std::ptrdiff_t>(oldest_));
    oldest_ = 0;
  }
}

}  // namespace popgate
