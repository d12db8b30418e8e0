// SPDX-License-Identifier: Apache-2.0
//
// A TCP port on 127.0.0.1 that is free now and stays ours while this object lives.
//
// Below the range from which the kernel takes the ports of outgoing connections: a client that tries again and again to
// reach a stopped server on a port of that range would sooner or later be given that very port and connect to itself.
// The reservation is an abstract Unix socket named after the port, so that test processes that run side by side do not
// choose the same one, and nothing is left behind when one is killed.
//
// Threads: one thread at a time.
// Limits: throws std::runtime_error after kAttemptsMax ports that were all taken.
#pragma once

#include <cstdint>

namespace popgate::process {

class FreePort {
 public:
  FreePort();
  ~FreePort();
  FreePort(FreePort&& other) noexcept : port_(other.port_), reservation_(other.reservation_) {
    other.reservation_ = -1;
  }
  FreePort& operator=(FreePort&&) = delete;

  [[nodiscard]] std::uint16_t number() const { return port_; }

 private:
  static constexpr int kAttemptsMax = 1000;
  std::uint16_t port_ = 0;
  int reservation_ = -1;
};

}  // namespace popgate::process
