// SPDX-License-Identifier: Apache-2.0
#include "daemon/clock_watch.h"

#include <spdlog/spdlog.h>

#include <vector>

namespace popgate {
namespace {

Hold hold_for(ClockStanding standing) {
  switch (standing) {
    case ClockStanding::kRight:
      return Hold::kNone;
    case ClockStanding::kUnjudged:
      return Hold::kUnjudged;
    case ClockStanding::kOff:
      break;
  }
  return Hold::kClockOff;
}

std::vector<ClockGuard::PeerClock> clocks_of(const MeshStatus& mesh) {
  std::vector<ClockGuard::PeerClock> clocks;
  for (const PeerStatus& peer : mesh.peers) {
    if (peer.skew && peer.rtt) clocks.push_back({.skew = *peer.skew, .round_trip = *peer.rtt});
  }
  return clocks;
}

}  // namespace

// A process that loses its processor between two clocks must not take that for a step: the wall clock is read between
// two readings of the other that are close together, if there are any.
ClockGuard::Instants ClockWatch::now() const {
  constexpr int kReadingsMax = 3;
  constexpr microseconds kClose{1000};
  ClockGuard::Instants read{};
  for (int i = 0; i < kReadingsMax; ++i) {
    read.host = setup_.reactor.host_now();
    read.wall = setup_.reactor.wall_now();
    if (setup_.reactor.host_now() - read.host < kClose) break;
  }
  return read;
}

void ClockWatch::look(const MeshStatus& mesh) {
  const ClockGuard::Look look = setup_.guard.look(clocks_of(mesh), now());
  if (look.stamps_in_doubt) {
    setup_.store.hold_increments(Hold::kUnjudged);  // one that is not held sends what it is handed
    give_up();
  }
  setup_.store.hold_increments(hold_for(look.is));
  if (look.is == ClockStanding::kOff && !waits_) give_up();
  if (look.is != look.was) tell(look);
}

// What workers' stamps and this node's clock disagree about: counted in those slots it could make peers' lower bounds
// wrong.
void ClockWatch::give_up() {
  setup_.hand_over();
  setup_.store.drop_unsent();
}

void ClockWatch::tell(const ClockGuard::Look& look) {
  const bool matters = look.is == ClockStanding::kOff || look.was == ClockStanding::kOff;
  if (!matters || !log_.allow(setup_.reactor.host_now())) return;
  if (look.is != ClockStanding::kOff) {
    spdlog::warn("this node's clock is no longer known to be off: what was held back is dropped");
  } else {
    spdlog::error(
        "this node's clock is {} ms ahead of the PoP's, beyond clock_tolerance: it counts nothing into the "
        "shared counters, and rules do what on_counter_failure says, until the clock is right",
        setup_.guard.ahead().count() / 1000);
  }
}

void visit_standing(ClockStanding standing, const MetricVisitor& visitor) {
  const auto state = [&](std::string_view name, std::string_view meaning, ClockStanding told) {
    visitor({name, "", meaning, standing == told ? 1.0 : 0.0, false, {}, {}});
  };
  state("popgate_clock_off", "1 while this node's clock is off and it therefore counts nothing into shared counters.",
        ClockStanding::kOff);
  state("popgate_clock_unjudged", "1 while nobody has compared this node's clock yet, and its hits wait for that.",
        ClockStanding::kUnjudged);
}

}  // namespace popgate
