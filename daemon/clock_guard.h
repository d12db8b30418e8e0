// SPDX-License-Identifier: Apache-2.0
//
// Says whether this node's wall clock is off: further from the middle of the PoP's clocks than the slots allow.
//
// Such a node would count hits into slots that its peers do not look at, and make their lower bounds wrong; so it must
// not increment, and judges its own hits until the clock is right again. The middle is the median of all clocks that
// are known, its own included; of two nodes nobody can say which is wrong, so both are. While no peer is known, what
// was known last holds, and moves with the steps of the own clock: a node that loses its peers is not right for that.
//
// Threads: values.
// Invariants: 1. What half a round trip can explain is not held against a clock.
//             2. Once off, a clock is right again only within kBackWithin of the tolerance, so that it does not flap.
#pragma once

#include <optional>
#include <span>

#include "libclient/instant.h"

namespace popgate {

class ClockGuard {
 public:
  struct PeerClock {
    microseconds skew{0};        // the peer's wall clock less ours
    microseconds round_trip{0};  // the skew is right to half of it
  };

  explicit ClockGuard(microseconds tolerance) : tolerance_(tolerance) {}

  void use_tolerance(microseconds tolerance) { tolerance_ = tolerance; }
  /// A new look at the peers that are known now; true while this node's clock is off. `wall_less_host`: the wall clock
  /// less the boot-time clock, which changes only when the wall clock is set.
  bool look(std::span<const PeerClock> peers, microseconds wall_less_host);
  [[nodiscard]] bool is_off() const { return off_; }
  /// How far this node's clock is ahead of the middle.
  [[nodiscard]] microseconds ahead() const { return ahead_; }

 private:
  static constexpr double kBackWithin = 0.75;

  microseconds tolerance_;
  microseconds ahead_{0};
  std::optional<microseconds> wall_less_host_;  // at the last look
  bool off_ = false;
};

}  // namespace popgate
