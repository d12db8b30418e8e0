// SPDX-License-Identifier: Apache-2.0
//
// Reads what makes a node part of a PoP: `counters:`, `mesh:` and `trusted_proxies:`.
//
// Threads: pure.
// Invariants: 1. Without a fault: shards have distinct names and addresses and each gets keys; peers have distinct
//                names and addresses, and this node is not among them; without mesh.tls the
//                mesh listens on loopback only.
#pragma once

#include "daemon/config.h"
#include "daemon/config_section.h"

namespace popgate {

void read_counters(const Section& top, Config& config);
/// After `node` was read.
void read_mesh(const Section& top, Config& config);
/// Reads the files of mesh.tls. Only when nothing is wrong with the rest.
void load_mesh_files(const Section& top, Config& config);
void read_trusted_proxies(const Section& top, Config& config);

}  // namespace popgate
