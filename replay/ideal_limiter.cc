// SPDX-License-Identifier: Apache-2.0
#include "replay/ideal_limiter.h"

#include <algorithm>

namespace popgate {

IdealLimiter::State& IdealLimiter::state_of(const Match& match, const Rule& rule) {
  return keys_.try_emplace(match.key, State{ExactCount(rule.window.window, rule.limit)}).first->second;
}

// Whether this rule would block the request now; a request that goes over starts or extends the mitigation.
bool IdealLimiter::is_over(State& state, const Rule& rule, PopInstant now) {
  if (state.until > now) return true;
  if (state.exact.count(now) + rule.cost <= rule.limit) return false;
  if (rule.mitigate.count() > 0) {
    const std::uint64_t admits = rule.limit >= rule.cost ? rule.limit - rule.cost : 0;
    state.until = std::max<PopInstant>(now + rule.mitigate, state.exact.falls_to(admits, now));
  }
  return true;
}

bool IdealLimiter::blocks(PopInstant now, std::span<const Match> matches) {
  if (keys_.size() >= sweep_at_) sweep(now);
  bool blocked = false;
  for (const Match& match : matches) {
    const Rule* rule = rules_->by_number(match.rule);
    if (rule == nullptr) continue;
    const bool over = is_over(state_of(match, *rule), *rule, now);
    blocked = blocked || (over && rule->action == Action::kBlock);
  }
  for (const Match& match : matches) {
    const Rule* rule = rules_->by_number(match.rule);
    if (rule == nullptr || (blocked && rule->count == CountMode::kAllowed)) continue;
    state_of(match, *rule).exact.add(now, rule->cost);
  }
  return blocked;
}

// Amortised: the next sweep comes when as many keys have been added as were left.
void IdealLimiter::sweep(PopInstant now) {
  for (auto it = keys_.begin(); it != keys_.end();) {
    const bool idle = it->second.until <= now && it->second.exact.is_idle(now, now);
    it = idle ? keys_.erase(it) : std::next(it);
  }
  sweep_at_ = std::max<std::size_t>(65536, keys_.size() * 2);
}

}  // namespace popgate
