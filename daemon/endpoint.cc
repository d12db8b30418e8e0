// SPDX-License-Identifier: Apache-2.0
#include "daemon/endpoint.h"

#include <algorithm>
#include <charconv>

#include "libclient/match/client_address.h"

namespace popgate {
namespace {

constexpr std::size_t kHostNameBytesMax = 253;

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > kHostNameBytesMax || text.front() == '-' || text.front() == '.') return false;
  const bool letters = std::all_of(text.begin(), text.end(), [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
  });
  // Numbers and dots only: an IPv4 address or a slip of the pen, never a name.
  const bool numeric = text.find_first_not_of("0123456789.") == std::string_view::npos;
  ClientAddress address;
  return letters && (!numeric || parse_ip(text, address));
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

std::optional<Endpoint> parse_unix(std::string_view text) {
  if (text.size() < 2 || text.size() > kUnixPathBytesMax || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  Endpoint endpoint;
  endpoint.unix_path = text;
  return endpoint;
}

}  // namespace

std::string Endpoint::text() const {
  if (!unix_path.empty()) return unix_path;
  const bool literal = host.find(':') != std::string::npos;
  return (literal ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Endpoint::is_loopback() const {
  ClientAddress address;
  if (!unix_path.empty() || !parse_ip(host, address)) return false;
  if (address.bytes == 4) return address.octets[0] == 127;
  return std::all_of(address.octets, address.octets + 15, [](auto octet) { return octet == 0; }) &&
         address.octets[15] == 1;
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  if (text.starts_with('/')) return parse_unix(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_port(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  ClientAddress address;
  const bool right =
      brackets ? host.find(':') != std::string_view::npos && parse_ip(host, address) : is_host_name(host);
  if (!port || !right) return std::nullopt;
  Endpoint endpoint;
  endpoint.host = host;
  endpoint.port = *port;
  return endpoint;
}

}  // namespace popgate
