// SPDX-License-Identifier: Apache-2.0
//
// A real nutcracker (twemproxy) in front of memcached servers, for the length of a test.
//
// The configuration is handed over as an inherited memfd, so that nothing is left on disk.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/free_port.h"

namespace popgate::process {

struct NutcrackerServer {
  std::string name;
  std::uint16_t port = 0;
  std::uint32_t weight = 1;
};

class Nutcracker {
 public:
  /// What a whole nutcracker.yml says, given the port on which the pool is to listen.
  using YmlFunction = std::function<std::string(std::uint16_t listen_port)>;
  explicit Nutcracker(const YmlFunction& yml) : yml_(yml(port_.number())) { start(); }

  /// A pool as Popgate needs it (twemproxy-config/README.md), with its own time-out.
  explicit Nutcracker(const std::vector<NutcrackerServer>& servers,
                      std::chrono::milliseconds timeout = std::chrono::milliseconds(300));

  [[nodiscard]] std::uint16_t port() const { return port_.number(); }
  [[nodiscard]] std::uint16_t stats_port() const { return stats_port_.number(); }
  void kill() { process_->kill_now(); }
  void start();
  void restart() {
    kill();
    start();
  }
  [[nodiscard]] ChildProcess& process() { return *process_; }

 private:
  FreePort port_;
  FreePort stats_port_;
  std::string yml_;
  std::optional<ChildProcess> process_;
};

/// `nutcracker --test-conf` on the text: its exit status is 0 and it says so.
[[nodiscard]] bool nutcracker_accepts(const std::string& yml, std::string& said);

}  // namespace popgate::process
