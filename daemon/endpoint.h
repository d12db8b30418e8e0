// SPDX-License-Identifier: Apache-2.0
//
// Where something listens: a TCP address or a Unix socket.
//
// Threads: values.
// Limits: a Unix socket's path has kUnixPathBytesMax bytes at most (sockaddr_un, with its terminating zero).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace popgate {

inline constexpr std::size_t kUnixPathBytesMax = 107;

/// A TCP address (IPv4, IPv6 or a name that is looked up at start), or a Unix socket when `unix_path` is not empty.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  std::string unix_path;
  [[nodiscard]] std::string text() const;  // "127.0.0.1:11211", "[::1]:11211", "/run/memcached.sock"
  /// True for 127.0.0.0/8 and ::1 in numbers; a name may lead anywhere.
  [[nodiscard]] bool is_loopback() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// Reads what text() writes; a port is 1 to 65535, a Unix socket's path absolute. Empty for anything else.
[[nodiscard]] std::optional<Endpoint> parse_endpoint(std::string_view text);

}  // namespace popgate
