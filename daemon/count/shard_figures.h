// SPDX-License-Identifier: Apache-2.0
//
// What one shard has done so far, in figures.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <string_view>

#include "daemon/metrics.h"
#include "libclient/instant.h"

namespace popgate {

struct ShardFigures {
  bool reachable = false;
  bool degraded = false;
  std::uint64_t degraded_entered = 0;
  std::uint64_t degraded_left = 0;
  std::uint64_t batches = 0;
  std::uint64_t delivered = 0;
  std::uint64_t uncertain = 0;
  std::uint64_t refused = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t disconnects = 0;
  std::uint64_t losses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t generation_changes = 0;
  std::uint64_t totals_fallen = 0;
  std::uint64_t misplacements = 0;
  std::uint64_t refused_for_memory = 0;
  bool watched = true;  // for evictions; until the first question should have been answered
  bool misplaced = false;
  microseconds round_trip{0};  // of the last complete batch
};

/// Of a shard that is only read.
void visit_read_figures(const ShardFigures& figures, std::string_view shard_name, const MetricVisitor& visitor);
void visit_figures(const ShardFigures& figures, std::string_view shard_name, const MetricVisitor& visitor);

}  // namespace popgate
