// SPDX-License-Identifier: Apache-2.0
//
// Says what is known of this node's wall clock: right, off (further from the middle of the PoP's clocks than the slots
// allow), or not judged yet.
//
// A node whose clock is off would count hits into slots that its peers do not look at, and make their lower bounds
// wrong; so it must not increment, and judges its own hits until the clock is right again. The middle is the median of
// all clocks that are known, its own included; of two nodes nobody can say which is wrong, so both are. While no peer
// is known, what was known last holds, and moves with the steps of the own clock: a node that loses its peers is not
// right for that.
//
// At its start nothing is known, and after a pause of the whole machine what was known may be wrong: the kernel sets
// the wall clock by one that ticks in seconds. Until more than half of the PoP's clocks have been compared the clock is
// then unjudged. A node that nobody compares itself with within kJudgedWithin is taken to be right, because a cut mesh
// would stop all counting else; so may a node be whose clock is wrong and whose peers cannot be heard, and nobody can
// tell. That one's hits stand in wrong slots.
//
// Threads: values.
// Invariants: 1. What half a round trip can explain is not held against a clock.
//             2. Once off, a clock is right again only within kBackWithin of the tolerance, so that it does not flap.
//             3. What was known to be off is not right again for a pause.
//             4. A PoP of one node has no middle: its clock is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "libclient/instant.h"

namespace popgate {

enum class ClockStanding : std::uint8_t { kUnjudged, kRight, kOff };

class ClockGuard {
 public:
  /// A peer that is there is heard within this (mesh_context.h).
  static constexpr milliseconds kJudgedWithin{2000};
  /// Between two looks: this process, or the machine, stood still.
  static constexpr milliseconds kPauseMax{1000};

  struct Setup {
    microseconds tolerance{0};
    std::size_t members = 1;  // of the PoP as configured, this node included
  };
  struct PeerClock {
    microseconds skew{0};        // the peer's wall clock less ours
    microseconds round_trip{0};  // the skew is right to half of it
  };
  struct Instants {
    HostInstant host;
    PopInstant wall;
  };
  struct Look {
    ClockStanding was = ClockStanding::kUnjudged;
    ClockStanding is = ClockStanding::kUnjudged;
    /// Hits that wait were stamped by another clock than the one that is now to be judged, or by one that was off.
    bool stamps_in_doubt = false;
  };

  explicit ClockGuard(Setup setup)
      : setup_(setup), standing_(setup.members > 1 ? ClockStanding::kUnjudged : ClockStanding::kRight) {}

  void use_tolerance(microseconds tolerance) { setup_.tolerance = tolerance; }
  /// A new look at the peers that are known now; at least once a flush.
  Look look(std::span<const PeerClock> peers, Instants now);
  /// The wall clock was set since the last look, or time has passed in which nobody looked: what the clock says cannot
  /// be trusted before the next.
  [[nodiscard]] bool is_outdated(Instants now) const;

  [[nodiscard]] ClockStanding standing() const { return standing_; }
  [[nodiscard]] bool is_off() const { return standing_ == ClockStanding::kOff; }
  /// How far this node's clock is ahead of the middle.
  [[nodiscard]] microseconds ahead() const { return ahead_; }

 private:
  static constexpr double kBackWithin = 0.75;

  [[nodiscard]] microseconds step_at(Instants now) const;
  [[nodiscard]] bool has_stepped(Instants now) const;
  [[nodiscard]] bool was_paused(Instants now) const;
  [[nodiscard]] bool is_judged_by(std::span<const PeerClock> peers) const;
  void judge(std::span<const PeerClock> peers);

  Setup setup_;
  ClockStanding standing_;
  bool knows_middle_ = false;
  bool judged_off_ = false;  // by the last judgement
  microseconds ahead_{0};
  std::optional<Instants> looked_;
  HostInstant unjudged_since_{};
};

}  // namespace popgate
