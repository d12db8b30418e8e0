// SPDX-License-Identifier: Apache-2.0
//
// A network between hosts that are network namespaces of this machine, with the weather that a test asks for.
//
// Each host has a TUN interface and an address; every packet that a host sends comes to this object, which drops it,
// delays it, sends it twice or lets it be overtaken, and then hands it to the host it is for. So real programs with
// the kernel's real TCP meet loss, delay and partition without a kernel module (netem) for it.
//
// Threads: packets are carried on a thread of its own; the calls may come from any thread.
// Invariants: 1. The fate of the n-th packet depends on the seed and on the conditions then, and on nothing else.
//             2. A packet is carried whole or not at all.
// Limits: kPacketsMax under way, as a router's queue; beyond it packets are dropped and counted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/network_namespace.h"

namespace popgate::process {

class Network {
 public:
  struct Conditions {
    double loss = 0;                      // share of the packets, each way
    double duplicated = 0;                // share of the packets
    std::chrono::microseconds delay{0};   // each way
    std::chrono::microseconds jitter{0};  // up to so much more: packets overtake each other
    bool cut = false;
  };
  struct Counts {
    std::uint64_t carried = 0;
    std::uint64_t dropped = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t overflowed = 0;
  };

  /// Why there can be no such network here: no right to make namespaces, or no /dev/net/tun. Empty when there can.
  [[nodiscard]] static std::optional<std::string> unavailable();

  /// Hosts 0 .. count - 1, clear weather.
  Network(std::size_t hosts, std::uint64_t seed);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] std::size_t hosts() const;
  [[nodiscard]] std::string address(std::size_t host) const;
  [[nodiscard]] const NetworkNamespace& network_namespace(std::size_t host) const;

  /// Between these two hosts, both ways.
  void between(std::size_t one, std::size_t other, const Conditions& conditions);
  /// Among hosts first .. first + count - 1.
  void among(std::size_t first, std::size_t count, const Conditions& conditions);
  [[nodiscard]] Counts counts() const;

 private:
  class Router;
  std::unique_ptr<Router> router_;
};

}  // namespace popgate::process
