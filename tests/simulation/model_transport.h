// SPDX-License-Identifier: Apache-2.0
//
// The Transport of one process of the model: streams and listeners over the model's network.
//
// What a stream was given and its process has not handed to the kernel yet waits in the stream, as in a bufferevent: a
// process that is killed in between takes it with it. The loop hands over soon after each write.
//
// Threads: one.
// Invariants: those of daemon/stream.h.
// Limits: kListenBacklog connections wait to be accepted by a process that does not come to it; further ones are reset.
#pragma once

#include <memory>
#include <string>

#include "daemon/transport.h"
#include "tests/simulation/network.h"
#include "tests/simulation/process.h"

namespace popgate::simulation {

/// The most that ever waited in a stream of a transport, and the most that was ever written at once: what a bound is
/// checked against.
struct OutputHighWater {
  std::size_t bytes = 0;
  std::size_t write_bytes = 0;
};

class ModelTransport final : public Transport {
 public:
  static constexpr std::size_t kReadBytes = 64 * 1024;  // of one turn
  static constexpr std::size_t kListenBacklog = 64;

  ModelTransport(Network& network, Process& process, HostNumber host)
      : network_(network), process_(process), host_(host) {}

  [[nodiscard]] std::unique_ptr<Stream> dial(const SocketAddress& address, const std::string& name) override;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const SocketAddress& address,
                                                         AcceptFunction accepted) override;
  [[nodiscard]] const OutputHighWater& high_water() const { return *high_water_; }

 private:
  Network& network_;
  Process& process_;
  HostNumber host_;
  std::shared_ptr<OutputHighWater> high_water_ = std::make_shared<OutputHighWater>();
};

/// 127.0.x.y is host x * 256 + y.
[[nodiscard]] std::string address_of_host(HostNumber host);
[[nodiscard]] Port port_of(const SocketAddress& address);

}  // namespace popgate::simulation
