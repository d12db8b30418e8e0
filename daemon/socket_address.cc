// SPDX-License-Identifier: Apache-2.0
#include "daemon/socket_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "daemon/endpoint.h"

namespace popgate {
namespace {

template <typename T>
T as(const sockaddr_storage& storage) {
  T address;
  std::memcpy(&address, &storage, sizeof address);
  return address;
}

Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) {
    return Error{path + ": found " + std::to_string(path.size()) + " characters, allowed: fewer than " +
                 std::to_string(sizeof address.sun_path) + " for a Unix socket"};
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace

Result<SocketAddress> SocketAddress::resolve(const Endpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return unix_address(endpoint.unix_path);
  return resolve(endpoint.host, endpoint.port);
}

Result<SocketAddress> SocketAddress::resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return Error{"cannot resolve \"" + host + "\": " + gai_strerror(code)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  return of(found->ai_addr, found->ai_addrlen);
}

SocketAddress SocketAddress::of(const sockaddr* address, socklen_t bytes) {
  SocketAddress copy;
  copy.bytes_ = std::min<socklen_t>(bytes, sizeof copy.storage_);
  std::memcpy(&copy.storage_, address, copy.bytes_);
  return copy;
}

bool SocketAddress::is_loopback() const {
  if (storage_.ss_family == AF_INET) return ntohl(as<sockaddr_in>(storage_).sin_addr.s_addr) >> 24 == 127;
  if (storage_.ss_family != AF_INET6) return false;
  const in6_addr address = as<sockaddr_in6>(storage_).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

std::uint16_t SocketAddress::port() const {
  if (storage_.ss_family == AF_INET) return ntohs(as<sockaddr_in>(storage_).sin_port);
  if (storage_.ss_family == AF_INET6) return ntohs(as<sockaddr_in6>(storage_).sin6_port);
  return 0;
}

std::string SocketAddress::text() const {
  if (storage_.ss_family == AF_UNIX) return as<sockaddr_un>(storage_).sun_path;
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  constexpr int kNumeric = NI_NUMERICHOST | NI_NUMERICSERV;
  if (getnameinfo(get(), bytes_, host, sizeof host, port, sizeof port, kNumeric) != 0) return "unknown address";
  const bool is_v6 = storage_.ss_family == AF_INET6;
  return (is_v6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

}  // namespace popgate
