// SPDX-License-Identifier: Apache-2.0
//
// An endpoint of the configuration as the socket calls want it: TCP, or a Unix socket.
//
// Threads: values. resolve() blocks while a name is looked up: at start only, because the event loop must not.
// Invariants: 1. It is a copy: nothing of whoever gave it is kept.
// Limits: of a name that has several addresses the first counts; a Unix path has at most 107 bytes.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "daemon/result.h"

namespace popgate {

struct Endpoint;

class SocketAddress {
 public:
  [[nodiscard]] static Result<SocketAddress> resolve(const Endpoint& endpoint);
  [[nodiscard]] static Result<SocketAddress> resolve(const std::string& host, std::uint16_t port);
  [[nodiscard]] static SocketAddress of(const sockaddr* address, socklen_t bytes);

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t bytes() const { return bytes_; }
  /// 127.0.0.0/8, ::1, and the former written as IPv6.
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string text() const;  // "127.0.0.1:7400", "[::1]:7400", "/run/memcached.sock"

 private:
  sockaddr_storage storage_{};
  socklen_t bytes_ = 0;
};

}  // namespace popgate
