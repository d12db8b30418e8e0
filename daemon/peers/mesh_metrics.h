// SPDX-License-Identifier: Apache-2.0
//
// The figures of the mesh, each with its name, unit and meaning in one table (mesh_metrics.cc).
//
// Threads: the event loop's.
#pragma once

#include <cstdint>

#include "daemon/metrics.h"
#include "daemon/peers/peer_status.h"

namespace popgate {

/// Of the accepting side as a whole: strangers included.
struct MeshCounts {
  std::uint64_t accepted = 0;
  std::uint64_t half_open_refused = 0;
  std::uint64_t hellos_refused = 0;
  std::uint64_t rubbish_cuts = 0;
  std::uint64_t accept_failures = 0;
};

void visit_mesh(const MeshStatus& status, const MeshCounts& counts, const MetricVisitor& visitor);

}  // namespace popgate
