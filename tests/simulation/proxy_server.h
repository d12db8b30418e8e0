// SPDX-License-Identifier: Apache-2.0
//
// A twemproxy of the simulated PoP, on a node's own host: as FACTS measured nutcracker, where that matters to counting.
//
//     one connection to each shard; requests of a client are answered in its order, so that one shard that hangs holds
//     up the rest of that connection; what a shard has not answered within the time-out is answered by
//     "SERVER_ERROR Connection timed out" and may be carried out later; a shard that nobody serves is "Connection
//     refused" at once; a get of several keys is one error when one of its shards fails
//
// Threads: one.
// Limits: none but the model's; the clients bound what they send.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/count/placement.h"
#include "tests/simulation/model_transport.h"

namespace popgate::simulation {

class ProxyServer {
 public:
  static constexpr std::uint16_t kPort = 22121;
  static constexpr microseconds kTimeout{300'000};
  static constexpr microseconds kTimeoutPoll{20'000};

  ProxyServer(Network& network, HostNumber host, const std::vector<ShardConfig>& shards);
  ~ProxyServer();
  ProxyServer(const ProxyServer&) = delete;
  ProxyServer& operator=(const ProxyServer&) = delete;

  [[nodiscard]] Process& process() { return process_; }

 private:
  class Client;
  class Server;
  /// One request of a client, and the pieces of it that shards answer.
  struct Request {
    std::size_t pieces_open = 0;
    std::string reply;
    std::string error;
    bool is_get = false;
  };
  using SharedRequest = std::shared_ptr<Request>;

  [[nodiscard]] ShardIndex shard_of(std::string_view key) const;
  void forward(ShardIndex shard, const SharedRequest& request, const std::string& text);
  void answered();

  Machine machine_;
  Random random_;
  Process process_;
  ModelTransport transport_;
  Placement placement_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace popgate::simulation
