// SPDX-License-Identifier: Apache-2.0
#include "replay/live_plan.h"

#include <algorithm>
#include <cmath>

namespace popgate {
namespace {

// Offsets on the log's clock, with long gaps cut.
void gather(RequestSource& source, const PlanOptions& options, LivePlan& plan) {
  NodeChooser chooser(options.spread, options.workers, options.seed);
  LoggedRequest logged;
  microseconds offset{0};
  PopInstant before{};
  while (source.next(logged)) {
    if (plan.requests.size() == kLiveRequestsMax) {
      plan.cut = true;
      return;
    }
    if (!plan.requests.empty()) offset += std::min<microseconds>(logged.time - before, options.max_gap);
    before = logged.time;
    const unsigned worker = chooser.choose(client_number(logged.client));
    plan.requests.push_back({std::move(logged), offset, worker});
  }
}

}  // namespace

LivePlan plan_requests(RequestSource& source, const PlanOptions& options) {
  LivePlan plan;
  gather(source, options, plan);
  if (plan.requests.empty()) return plan;
  const auto length = static_cast<double>(plan.requests.back().offset.count());
  plan.speed_up = options.speed_up;
  if (options.duration) plan.speed_up = std::max(length, 1.0) / static_cast<double>(options.duration->count());
  for (PlannedRequest& request : plan.requests) {
    request.offset = microseconds(std::llround(static_cast<double>(request.offset.count()) / plan.speed_up));
  }
  plan.length = plan.requests.back().offset;
  return plan;
}

}  // namespace popgate
