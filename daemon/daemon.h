// SPDX-License-Identifier: Apache-2.0
//
// The daemon of one node: the path (pipeline.h) on an event loop and sockets, with workers at its beginning, an
// operator beside it, and signals that end it.
//
// Threads: one; everything runs on the event loop inside run().
// Invariants: 1. What start() has opened is closed by the destructor in reverse order, also when a later step failed.
// Limits: a stop waits three seconds for replies and acknowledgements; every part has its own.
#pragma once

#include <memory>

#include "daemon/config.h"
#include "daemon/result.h"

namespace popgate {

class Daemon {
 public:
  /// Opens sockets, table, ledger and record file, takes over what the last daemon left, and connects. Fails with a
  /// sentence when the node could not do its work (a socket in use, a folder that cannot be written); unreachable
  /// shards and peers are no failure.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(Config config);
  virtual ~Daemon() = default;

  /// Returns after SIGTERM or SIGINT, when hits under way have been counted (at most kStopWait) and peers were told.
  virtual void run() = 0;
};

}  // namespace popgate
