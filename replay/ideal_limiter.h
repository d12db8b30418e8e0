// SPDX-License-Identifier: Apache-2.0
//
// A limiter without delay, without slots and with one mind for all nodes: what the rules say, taken literally.
//
// It follows its own history: what it blocks is not counted (unless the rule counts all), whatever the real system did
// with that request. `limit` hits pass in a window; the next request is blocked, and with it the key for `mitigate`,
// and in any case until a request would be admitted again.
//
// Threads: one thread.
// Invariants: 1. At most `limit` cost passes in any window of a blocking rule that counts what passes.
// Limits: one state for each key with a hit in its window or a mitigation in force; others are swept out.
#pragma once

#include <span>
#include <unordered_map>

#include "daemon/rules.h"
#include "libclient/match/matcher.h"
#include "replay/exact_count.h"

namespace popgate {

class IdealLimiter {
 public:
  explicit IdealLimiter(SharedRules rules) : rules_(std::move(rules)) {}
  /// True: blocked. Times must not go back.
  [[nodiscard]] bool blocks(PopInstant now, std::span<const Match> matches);

 private:
  struct State {
    ExactCount exact;
    PopInstant until = PopInstant::min();
  };
  [[nodiscard]] State& state_of(const Match& match, const Rule& rule);
  [[nodiscard]] bool is_over(State& state, const Rule& rule, PopInstant now);
  void sweep(PopInstant now);

  SharedRules rules_;
  std::unordered_map<Key, State, KeyHash> keys_;
  std::size_t sweep_at_ = 65536;
};

}  // namespace popgate
