// SPDX-License-Identifier: Apache-2.0
//
// An endpoint of the configuration as the socket calls want it.
//
// Names are looked up once, when the configuration is put to use: a look-up blocks, and the event loop must not.
//
// Threads: values.
#pragma once

#include <sys/socket.h>

#include <string>

#include "daemon/result.h"

namespace popgate {

struct Endpoint;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  std::string text;  // as configured, for people

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// May block on a name server.
[[nodiscard]] Result<SocketAddress> resolve_endpoint(const Endpoint& endpoint);

}  // namespace popgate
