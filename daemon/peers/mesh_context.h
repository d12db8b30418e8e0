// SPDX-License-Identifier: Apache-2.0
//
// What every link and session of one mesh shares.
//
// Threads: the event loop's.
// Invariants: 1. It outlives every link and session.
// Limits: one entry a peer; `output_bytes_max` waits for each.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "daemon/mitigate/brakes.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/peers/hello.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"

namespace popgate {

// After a bad stretch of the network everybody knows everything within two seconds. The kernel alone would not do:
// after a minute of lost packets it waits tens of seconds until it sends again, and a SYN that was lost is sent again
// after one second, then three. So what has been silent is cut, and what does not come about is tried anew, both within
// a second:
//     silence_max + heartbeat + reconnect_longest + a quick greeting      < 2 s  (1.65 s and the greeting)
//     hello_timeout + reconnect_longest + a quick greeting                < 2 s
// The price: where more than about a third of all packets is lost for long, connections are cut that would have lived.
struct MeshTimings {
  milliseconds heartbeat{250};
  milliseconds hello_timeout{1000};  // from dialling to the answered hello, and kHelloRoundTrips more; see acceptor's
  milliseconds silence_max{1000};    // without an acknowledgement (dialler) or anything (acceptor): cut
  milliseconds digest{3000};         // jittered by a quarter either way
  milliseconds backoff_first{100};
  milliseconds backoff_longest{5000};   // between attempts at a peer that refuses, or answers what it must not
  milliseconds reconnect_longest{400};  // between attempts at a peer that is not there
  milliseconds stable_after{5000};      // live for so long: the next back-off starts small again
};
/// For a connection, TLS and the greeting, with one to spare: where the way is long, greeting takes longer.
inline constexpr int kHelloRoundTrips = 4;
/// The acceptor knows neither when the dialler began nor how long the way is, so it waits so many times as long.
inline constexpr int kAcceptorPatience = 3;

struct MeshContext {
  Reactor& reactor;
  Transport& transport;
  Mitigations& set;
  Brakes* brakes;                              // null: none are told, and none believed
  std::function<wire::NodeFigures()> figures;  // of this node, for each heartbeat; empty: none
  MeshIdentity identity;
  MeshTimings timings;
  std::size_t output_bytes_max;
  std::mt19937_64 random;
  std::function<std::optional<CountLag>()> count_lag{};                     // what heartbeats tell
  std::map<std::string, std::vector<wire::SecretName>> secrets_of_peers{};  // as each said last, on either connection
};

}  // namespace popgate
