// SPDX-License-Identifier: Apache-2.0
//
// Sees, while a live replay runs, which keys cross their limit, so that the workers can watch when each daemon
// enforces.
//
// It counts what passed, as results come in; those of different workers may come a millisecond or two out of order,
// which is good enough to start watching. The judgement of the run is made afterwards, on all results in the order of
// their times.
//
// Threads: the parent's.
// Limits: kWatchesMax crossings a run.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/exact_count.h"
#include "replay/live_memory.h"
#include "replay/live_plan.h"
#include "replay/rule_matcher.h"

namespace popgate {

class CrossingFinder {
 public:
  CrossingFinder(const LivePlan& plan, const RuleMatcher& matcher, LiveMemory& memory, unsigned workers);
  /// Takes in every result that has come since.
  void look();
  [[nodiscard]] std::uint64_t results() const { return results_; }

 private:
  struct State {
    explicit State(ExactCount count) : exact(std::move(count)) {}
    ExactCount exact;
    bool above = false;
    PopInstant watched_at{};
  };
  void take(std::uint32_t request, const LiveResult& result);
  void count(std::uint32_t request, const Match& match, PopInstant time);

  const LivePlan& plan_;
  const RuleMatcher& matcher_;
  LiveMemory& memory_;
  std::vector<std::vector<std::uint32_t>> requests_;  // by worker, in the order of sending
  std::vector<std::size_t> next_;
  std::vector<std::pair<std::int64_t, std::uint32_t>> arrived_;  // of one look: when it was sent, and which
  std::unordered_map<Key, State, KeyHash> keys_;
  PopInstant latest_ = PopInstant::min();
  std::uint64_t results_ = 0;
};

}  // namespace popgate
