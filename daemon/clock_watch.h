// SPDX-License-Identifier: Apache-2.0
//
// Keeps a node whose clock is off, or that nobody has compared yet, from counting: looks at the clocks, and holds the
// increments of the store accordingly.
//
// It looks again and again, and before every flush whether the own clock was set since: so no hit that was stamped by a
// clock that was set is sent before the clock is judged.
//
// Threads: the event loop's.
#pragma once

#include <functional>

#include "daemon/clock_guard.h"
#include "daemon/count/counter_store.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/peers/peer_status.h"
#include "daemon/reactor.h"

namespace popgate {

class ClockWatch {
 public:
  struct Setup {
    Reactor& reactor;
    CounterStore& store;
    ClockGuard& guard;
    /// What was collected goes to the store.
    std::function<void()> hand_over;
  };

  explicit ClockWatch(Setup setup) : setup_(std::move(setup)) {}

  void look(const MeshStatus& mesh);
  /// The clock was set, or this process stood still, since the last look.
  [[nodiscard]] bool is_outdated() const { return setup_.guard.is_outdated(now()); }
  /// What cannot be counted while the clock is off is given up at each look from now on: the daemon stops.
  void wait_no_more() { waits_ = false; }

 private:
  [[nodiscard]] ClockGuard::Instants now() const;
  void tell(const ClockGuard::Look& look);
  void give_up();

  Setup setup_;
  bool waits_ = true;
  LogLimiter log_;
};

/// A node alone tells the same figures.
void visit_standing(ClockStanding standing, const MetricVisitor& visitor);

}  // namespace popgate
