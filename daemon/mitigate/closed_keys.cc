// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/closed_keys.h"

namespace popgate {

void ClosedKeys::decided(const Mitigation& mitigation) {
  if (mitigation.evidence.under != DecidedUnder::kClosed || due_.size() >= kKeysMax) return;
  due_.push_back({mitigation.until - kRenewBefore, mitigation.key});
}

void ClosedKeys::renew(const RuleSet& rules, BothInstants now) {
  for (std::size_t i = 0; i < kRenewalsPerCall && !due_.empty() && due_.front().at <= now.host; ++i) {
    const Key key = due_.front().key;
    due_.pop_front();
    renew(key, rules, now);
  }
}

void ClosedKeys::renew(const Key& key, const RuleSet& rules, BothInstants now) {
  const Mitigation* held = mitigations_.find(key).automatic;
  if (held == nullptr || held->evidence.under != DecidedUnder::kClosed || held->until <= now.host) return;
  if (held->version.node != mitigations_.node() || !is_degraded_(key)) return;
  const Rule* rule = rules.by_id(held->rule);
  if (rule == nullptr || !rule->enabled || rule->on_counter_failure != OnCounterFailure::kClosed) return;
  // Its end makes on_change call decided() again.
  (void)mitigations_.decide({key, *rule, held->evidence, closed_judgement(now.host)}, now.host, now.pop);
}

}  // namespace popgate
