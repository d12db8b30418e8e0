// SPDX-License-Identifier: Apache-2.0
#include "daemon/clock_guard.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace popgate {
namespace {

// The part of a skew that the round trip cannot explain.
microseconds certain_skew(const ClockGuard::PeerClock& peer) {
  const microseconds doubt = peer.round_trip / 2;
  const microseconds size = std::max(microseconds(0), std::chrono::abs(peer.skew) - doubt);
  return peer.skew < microseconds(0) ? -size : size;
}

// Of an even number, the middle one that is further from us.
microseconds median(std::vector<microseconds> skews) {
  std::sort(skews.begin(), skews.end());
  const microseconds upper = skews[skews.size() / 2];
  const microseconds lower = skews[(skews.size() - 1) / 2];
  return std::chrono::abs(lower) > std::chrono::abs(upper) ? lower : upper;
}

}  // namespace

bool ClockGuard::look(std::span<const PeerClock> peers, microseconds wall_less_host) {
  const microseconds step = wall_less_host - wall_less_host_.value_or(wall_less_host);
  wall_less_host_ = wall_less_host;
  std::vector<microseconds> skews{microseconds(0)};
  for (const PeerClock& peer : peers) skews.push_back(certain_skew(peer));
  ahead_ = peers.empty() ? ahead_ + step : -median(std::move(skews));
  const auto bound = std::chrono::duration<double, std::micro>(tolerance_) * (off_ ? kBackWithin : 1.0);
  off_ = std::chrono::duration<double, std::micro>(std::chrono::abs(ahead_)) > bound;
  return off_;
}

}  // namespace popgate
