// SPDX-License-Identifier: Apache-2.0
//
// What every store does first with the sums of a flush: looks up their rules, and takes their hits over into the
// windows of their keys. A sum under a number that no rule has is dropped and accounted.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "daemon/count/key_windows.h"
#include "daemon/metrics.h"
#include "daemon/rules.h"

namespace popgate {

class SumIntake {
 public:
  explicit SumIntake(Ledger& ledger) : ledger_(ledger) {}

  /// `taken` hears of each window with new hits, once for each sum.
  void take(std::span<const HitSum> sums, const RuleSet& rules, KeyWindows& windows, PopInstant now,
            const std::function<void(WindowIndex)>& taken);
  void visit(const MetricVisitor& visitor) const;

 private:
  Ledger& ledger_;
  std::uint64_t unknown_rule_hits_ = 0;
};

}  // namespace popgate
