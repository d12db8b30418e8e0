// SPDX-License-Identifier: Apache-2.0
//
// When and through which worker each request of a log is sent in a live replay.
//
// The log's clock is compressed: by a given factor, or so that everything fits a given time. Idle gaps are cut to
// max_gap first. The daemons' windows are real time and are not compressed: a client's rate is the log's rate times the
// factor.
//
// Threads: values.
// Limits: kLiveRequestsMax requests are kept in memory; beyond them the plan ends, and says so.
#pragma once

#include <optional>
#include <vector>

#include "daemon/result.h"
#include "replay/logged_request.h"
#include "replay/spread.h"

namespace popgate {

inline constexpr std::size_t kLiveRequestsMax = 2'000'000;

struct PlannedRequest {
  LoggedRequest logged;
  microseconds offset{0};  // from the start of the run
  unsigned worker = 0;
};

struct LivePlan {
  std::vector<PlannedRequest> requests;  // ascending offsets
  microseconds length{0};
  double speed_up = 1;
  bool cut = false;  // there were more than kLiveRequestsMax
};

struct PlanOptions {
  unsigned workers = 1;
  Spread spread = Spread::kRoundRobin;
  std::uint64_t seed = 1;
  microseconds max_gap = std::chrono::seconds(60);
  double speed_up = 1;
  std::optional<microseconds> duration;  // overrides speed_up
};

[[nodiscard]] LivePlan plan_requests(RequestSource& source, const PlanOptions& options);

}  // namespace popgate
