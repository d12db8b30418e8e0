// SPDX-License-Identifier: Apache-2.0
//
// A real memcached on a free port of 127.0.0.1, for the length of a test.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/free_port.h"
#include "tests/process/text_client.h"

namespace popgate::process {

class Memcached {
 public:
  struct Options {
    int megabytes = 64;
    std::vector<std::string> arguments{};  // further ones
    /// Where it runs, and the address there on which it listens beside 127.0.0.1.
    int network_namespace = -1;
    std::string address{};
  };

  /// Returns once it accepts connections; throws when it does not.
  Memcached() : Memcached(Options{}) {}
  explicit Memcached(Options options) : options_(std::move(options)) { start(); }

  [[nodiscard]] std::uint16_t port() const { return port_.number(); }
  /// SIGKILL; every counter is gone.
  void kill() { process_->kill_now(); }
  /// On the same port, empty.
  void start();
  void restart() {
    kill();
    start();
  }
  /// SIGSTOP: connections stay open, and accept bytes, but nothing answers.
  void freeze() { process_->freeze(); }
  void thaw() { process_->thaw(); }

  /// The value of a key, asked over a connection of its own; empty when it does not exist.
  [[nodiscard]] std::optional<std::string> value(const std::string& key) const;
  /// The same as a number; 0 when it does not exist.
  [[nodiscard]] std::uint64_t number(const std::string& key) const;
  /// A connection to it.
  [[nodiscard]] TextClient client() const { return TextClient(port(), options_.network_namespace); }
  [[nodiscard]] ChildProcess& process() { return *process_; }

 private:
  FreePort port_;
  Options options_;
  std::optional<ChildProcess> process_;
};

}  // namespace popgate::process
