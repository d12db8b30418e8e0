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

microseconds ClockGuard::step_at(Instants now) const {
  if (!looked_) return microseconds(0);
  const auto wall_less_host = [](const Instants& at) {
    return at.wall.time_since_epoch() - at.host.time_since_epoch();
  };
  return wall_less_host(now) - wall_less_host(*looked_);
}

bool ClockGuard::has_stepped(Instants now) const { return std::chrono::abs(step_at(now)) > setup_.tolerance; }

bool ClockGuard::was_paused(Instants now) const { return looked_ && now.host - looked_->host > kPauseMax; }

bool ClockGuard::is_outdated(Instants now) const { return setup_.members > 1 && (has_stepped(now) || was_paused(now)); }

// Those that are too far away can show that a clock is off, but not that it is right.
bool ClockGuard::is_judged_by(std::span<const PeerClock> peers) const {
  const auto near =
      std::ranges::count_if(peers, [&](const PeerClock& peer) { return peer.round_trip / 2 <= setup_.tolerance; });
  return 2 * (static_cast<std::size_t>(near) + 1) > setup_.members;
}

void ClockGuard::judge(std::span<const PeerClock> peers) {
  if (!peers.empty()) {
    std::vector<microseconds> skews{microseconds(0)};
    for (const PeerClock& peer : peers) skews.push_back(certain_skew(peer));
    ahead_ = -median(std::move(skews));
    knows_middle_ = true;
  }
  const auto bound = std::chrono::duration<double, std::micro>(setup_.tolerance) * (judged_off_ ? kBackWithin : 1.0);
  judged_off_ = std::chrono::duration<double, std::micro>(std::chrono::abs(ahead_)) > bound;
  standing_ = judged_off_ ? ClockStanding::kOff : ClockStanding::kRight;
}

ClockGuard::Look ClockGuard::look(std::span<const PeerClock> peers, Instants now) {
  if (setup_.members <= 1) return {ClockStanding::kRight, ClockStanding::kRight, false};
  Look look{.was = standing_};
  const bool stepped = has_stepped(now);
  if (knows_middle_) ahead_ += step_at(now);
  if (!looked_ || was_paused(now) || (stepped && !knows_middle_)) {
    standing_ = ClockStanding::kUnjudged;
    unjudged_since_ = now.host;
  }
  looked_ = now;
  const bool waits =
      standing_ == ClockStanding::kUnjudged && !is_judged_by(peers) && now.host - unjudged_since_ < kJudgedWithin;
  if (!waits) judge(peers);
  look.is = standing_;
  const bool is_over = look.was == ClockStanding::kOff && look.is != ClockStanding::kOff;
  look.stamps_in_doubt = is_over || (stepped && look.is != ClockStanding::kOff);
  return look;
}

}  // namespace popgate
