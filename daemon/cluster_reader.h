// SPDX-License-Identifier: Apache-2.0
//
// Reads what makes a node part of a PoP: `counters:`, `mesh:` and `trusted_proxies:`.
//
// Threads: pure.
// Invariants: 1. Without a fault: shards have distinct names and addresses and each gets keys; peers have distinct
//                names and addresses, and this node is not among them; the mesh listens on loopback only.
#pragma once

#include "daemon/config.h"
#include "daemon/config_section.h"

namespace popgate {

void read_counters(const Section& top, Config& config);
/// After `node` was read.
void read_mesh(const Section& top, Config& config);
void read_trusted_proxies(const Section& top, Config& config);

}  // namespace popgate
