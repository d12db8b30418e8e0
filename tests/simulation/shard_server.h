// SPDX-License-Identifier: Apache-2.0
//
// A memcached of the simulated PoP: the model of its commands, served over the model's network by a process that can be
// stopped, killed and started empty, and be slow.
//
// Threads: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/memcached_model.h"
#include "tests/simulation/model_transport.h"

namespace popgate::simulation {

class ShardServer {
 public:
  static constexpr std::uint16_t kPort = 11211;

  using CountedFunction = std::function<void(std::string_view counter, std::uint64_t hits)>;

  ShardServer(Network& network, HostNumber host, std::string name, CountedFunction counted);
  ~ShardServer();
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;

  /// With no items.
  void start();
  void kill();
  [[nodiscard]] bool is_running() const { return process_ != nullptr; }
  [[nodiscard]] Process* process() { return process_.get(); }  // null: not running
  [[nodiscard]] MemcachedModel* memcached() { return memcached_.get(); }

  [[nodiscard]] HostNumber host() const { return host_; }
  [[nodiscard]] const std::string& name() const { return machine_.name(); }

 private:
  class Client;

  Network& network_;
  HostNumber host_;
  Machine machine_;
  Random random_;
  CountedFunction counted_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<ModelTransport> transport_;
  std::unique_ptr<MemcachedModel> memcached_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace popgate::simulation
