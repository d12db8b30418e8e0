// SPDX-License-Identifier: Apache-2.0
//
// What every link and session of one mesh shares.
//
// Threads: the event loop's.
#pragma once

#include <cstddef>
#include <random>
#include <string>

#include "daemon/mitigate/mitigations.h"
#include "daemon/peers/hello.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"

namespace popgate {

struct MeshTimings {
  milliseconds heartbeat{250};
  milliseconds hello_timeout{3000};  // from connecting or accepting to the answered hello
  milliseconds silence_max{3000};    // without an acknowledgement (dialler) or anything (acceptor): cut
  milliseconds digest{3000};         // jittered by a quarter either way
  milliseconds backoff_first{100};
  milliseconds backoff_longest{5000};
  milliseconds stable_after{5000};  // live for so long: the next back-off starts small again
};

struct MeshContext {
  Reactor& reactor;
  Transport& transport;
  Mitigations& set;
  MeshIdentity identity;
  MeshTimings timings;
  std::size_t output_bytes_max;
  std::mt19937_64 random;
};

}  // namespace popgate
