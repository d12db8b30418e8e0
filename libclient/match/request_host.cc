// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/request_host.h"

#include "libclient/match/byte_set.h"

namespace popgate {
namespace {

bool only_digits(std::string_view text) noexcept {
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

/// `example.com:8080`, `example.com:` and `[::1]:80` lose the port; `::1` has none that could be told apart.
std::string_view without_port(std::string_view host) noexcept {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || !only_digits(host.substr(colon + 1))) return host;
  const bool literal = host.front() == '[';
  const bool port = literal ? colon > 0 && host[colon - 1] == ']' : host.find(':') == colon;
  return port ? host.substr(0, colon) : host;
}

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

constexpr ByteSet kChanged("ABCDEFGHIJKLMNOPQRSTUVWXYZ:");

// One pass tells that there is nothing to do, which is so for what most clients send.
bool is_normal(std::string_view host) noexcept {
  return host.size() <= kHostBytesMax && host.back() != '.' && kChanged.find_in(host) == host.size();
}

}  // namespace

std::string_view normal_host(std::string_view host, HostBuffer& buffer) noexcept {
  if (host.empty() || is_normal(host)) return host;
  host = without_port(host);
  if (!host.empty() && host.back() == '.') host.remove_suffix(1);
  if (host.size() > kHostBytesMax) host.remove_prefix(host.size() - kHostBytesMax);
  for (std::size_t i = 0; i < host.size(); ++i) {
    buffer.bytes[i] = static_cast<char>(is_upper(host[i]) ? host[i] + ('a' - 'A') : host[i]);
  }
  return {buffer.bytes, host.size()};
}

}  // namespace popgate
