// SPDX-License-Identifier: Apache-2.0
//
// Which node a request of a replay goes to.
//
// Threads: one thread.
#pragma once

#include <cstdint>
#include <random>

#include "libclient/match/request.h"

namespace popgate {

enum class Spread : std::uint8_t {
  kRoundRobin,  // by turns: every node sees a share of every client
  kByClient,    // a client always meets the same node, as behind a hashing balancer
  kRandom
};

/// A number that tells clients apart.
[[nodiscard]] std::uint64_t client_number(const ClientAddress& address);

class NodeChooser {
 public:
  NodeChooser(Spread spread, unsigned nodes, std::uint64_t seed) : spread_(spread), nodes_(nodes), random_(seed) {}
  [[nodiscard]] unsigned choose(std::uint64_t client);

 private:
  Spread spread_;
  std::uint64_t nodes_;
  std::mt19937_64 random_;
  std::uint64_t turn_ = 0;
};

}  // namespace popgate
