// SPDX-License-Identifier: Apache-2.0
//
// A real memcached on a free port of 127.0.0.1, for the length of a test.
//
// Threads: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/free_port.h"

namespace popgate::process {

class Memcached {
 public:
  /// Returns once it accepts connections; throws when it does not.
  explicit Memcached(int megabytes = 64) : megabytes_(megabytes) { start(); }

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
  [[nodiscard]] ChildProcess& process() { return *process_; }

 private:
  FreePort port_;
  int megabytes_;
  std::optional<ChildProcess> process_;
};

}  // namespace popgate::process
