// SPDX-License-Identifier: Apache-2.0
//
// The figures of the mitigate stage, each with its name, unit and meaning in one table (mitigation_counts.cc).
//
// Threads: the event loop's.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/metrics.h"
#include "daemon/mitigate/mitigation.h"

namespace popgate {

struct MitigationCounts {
  std::uint64_t decided = 0;
  std::array<std::uint64_t, kDecidedUnders> decided_under{};  // of decided and renewed
  std::uint64_t withheld_open = 0;
  std::uint64_t renewed = 0;
  std::uint64_t already_live = 0;
  std::uint64_t blocked = 0;
  std::uint64_t lifted = 0;
  std::uint64_t refused_full = 0;
  std::uint64_t refused_unready = 0;
  std::uint64_t merged = 0;
  std::uint64_t shortened = 0;
  std::uint64_t unchanged = 0;
  std::uint64_t beaten = 0;
  std::uint64_t refused_ahead = 0;
  std::uint64_t refused_foreign = 0;
  std::uint64_t refused_merge_full = 0;
  std::uint64_t ended = 0;
  std::uint64_t ended_dropped_early = 0;
  std::uint64_t rejudged = 0;

  void visit(const MetricVisitor& visitor) const;
};

}  // namespace popgate
