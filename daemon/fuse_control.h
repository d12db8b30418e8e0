// SPDX-License-Identifier: Apache-2.0
//
// Watches the fuses of this node's rules: takes what workers checked and what peers told, and orders a rule off when it
// blocks too much of the PoP.
//
// Threads: the event loop's.
// Invariants: 1. A rule that is off by itself already is not ordered off again.
//             2. A fuse never turns anything on.
// Limits: kFusedRulesMax rules; the figures of the peers of the mesh, those that were heard within kFuseHeardWithin.
#pragma once

#include <vector>

#include "daemon/brake_control.h"
#include "daemon/collect/request_totals.h"
#include "daemon/log_limiter.h"
#include "daemon/mitigate/fuse.h"
#include "daemon/peers/wire.h"

namespace popgate {

static_assert(kFusedRulesMax == wire::kRuleFiguresMax);

class FuseControl {
 public:
  struct Setup {
    Reactor& reactor;
    const SharedRules& rules;
    BrakeControl& brakes;
  };

  explicit FuseControl(Setup setup) : setup_(setup) {}

  void use_mesh(const Mesh* mesh) { mesh_ = mesh; }
  /// What workers have checked so far.
  void take(const RequestTotals& totals);
  /// This node's sums, for its peers.
  void describe(wire::NodeFigures& figures) const;
  /// Every second or so.
  void tick();
  /// Somebody turned blocking on again for a rule.
  void reset(RuleId rule) { fuse_.reset(rule, setup_.reactor.host_now()); }

  [[nodiscard]] const Fuse::Judged& judged() const { return judged_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  void hear_peers(HostInstant now);
  [[nodiscard]] std::vector<Fuse::Rated> rated() const;
  void blow(const Fuse::Share& share, bool for_pop);

  Setup setup_;
  const Mesh* mesh_ = nullptr;
  Fuse fuse_;
  RequestFigures own_;
  Fuse::Judged judged_;
  std::uint64_t blown_ = 0;
  LogLimiter refused_log_;  // asked again at each tick
};

}  // namespace popgate
