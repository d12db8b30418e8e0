// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge.h"

#include <algorithm>

namespace popgate {

bool is_over(Policy policy, const Rate& rate, std::uint64_t limit) {
  const auto allowed = static_cast<double>(limit);
  switch (policy) {  // kCertain acts on rate.lo, kCautious on rate.hi; the compiler asks for them here when they exist
    case Policy::kEstimate:
      return rate.estimate > allowed;
  }
  return false;
}

double admitting_level(const Rule& rule) {
  const std::uint64_t requests = rule.count == CountMode::kAll ? 2 : 1;
  const std::uint64_t needed = requests * rule.cost;
  return needed >= rule.limit ? 0 : static_cast<double>(rule.limit - needed);
}

std::optional<Judgement> judge(const Rule& rule, const Rate& rate, microseconds fall, HostInstant now) {
  if (!rule.enabled || !is_over(rule.policy, rate, rule.limit)) return std::nullopt;
  const microseconds longest = kMitigationMax;
  const microseconds needed = std::clamp(fall, microseconds(0), longest);
  const microseconds lasting = std::clamp<microseconds>(rule.mitigate, needed, longest);
  return Judgement{now + lasting, now + needed};
}

}  // namespace popgate
