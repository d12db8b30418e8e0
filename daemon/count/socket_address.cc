// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/socket_address.h"

#include <netdb.h>
#include <sys/un.h>

#include <cstring>
#include <memory>

#include "daemon/config.h"

namespace popgate {
namespace {

Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    return Error{path + ": found " + std::to_string(path.size()) + " characters, allowed: fewer than " +
                 std::to_string(sizeof address.sun_path) + " for a Unix socket"};
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  SocketAddress out;
  std::memcpy(&out.storage, &address, sizeof address);
  out.bytes = sizeof address;
  out.text = path;
  return out;
}

}  // namespace

Result<SocketAddress> resolve_endpoint(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return unix_address(endpoint.unix_path);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int fault = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &raw);
  if (fault != 0) return Error{endpoint.text() + ": " + gai_strerror(fault)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  SocketAddress out;
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.bytes = found->ai_addrlen;
  out.text = endpoint.text();
  return out;
}

}  // namespace popgate
