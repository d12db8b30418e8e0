// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/judge.h"

#include <algorithm>

namespace popgate {
namespace {

double level_with_room(const Rule& rule, std::uint64_t requests) {
  const std::uint64_t needed = requests * rule.cost;
  return needed >= rule.limit ? 0 : static_cast<double>(rule.limit - needed);
}

}  // namespace

RateFigure deciding_figure(const Rule& rule) {
  if (rule.mitigate.count() == 0) return RateFigure::kEstimate;
  switch (rule.policy) {
    case Policy::kEstimate:
      return RateFigure::kEstimate;
    case Policy::kCertain:
      return RateFigure::kLo;
    case Policy::kCautious:
      return RateFigure::kHi;
  }
  return RateFigure::kEstimate;
}

bool is_over(const Rule& rule, const Rate& rate) {
  const RateFigure figure = deciding_figure(rule);
  if (figure == RateFigure::kLo) return rate.lo > rule.limit;
  if (figure == RateFigure::kHi && rate.hi) return *rate.hi > rule.limit;
  return rate.estimate > static_cast<double>(rule.limit);
}

double admitting_level(const Rule& rule) { return level_with_room(rule, rule.count == CountMode::kAll ? 2 : 1); }

double fitting_level(const Rule& rule) { return level_with_room(rule, 1); }

Judgement judgement_of(const Rule& rule, microseconds fall, HostInstant now) {
  const microseconds longest = kMitigationMax;
  const microseconds needed = std::clamp(fall, microseconds(0), longest);
  const microseconds lasting = std::clamp<microseconds>(rule.mitigate, needed, longest);
  return {now + lasting, now + needed};
}

}  // namespace popgate
