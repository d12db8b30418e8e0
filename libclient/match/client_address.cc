// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "libclient/match/header_text.h"

namespace popgate {
namespace {

constexpr std::uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_port(std::string_view text) noexcept {
  unsigned port = 0;
  if (text.empty() || text.size() > 5) return false;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<unsigned>(c - '0');
  }
  return port <= UINT16_MAX;
}

bool is_zone(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
}

/// `fe80::1%eth0`: the zone means something on one host only. False when it is not the name of an interface.
bool cut_zone(std::string_view& text) noexcept {
  const std::size_t percent = text.find('%');
  if (percent == std::string_view::npos) return true;
  if (!is_zone(text.substr(percent + 1)) || text.find(':') == std::string_view::npos) return false;
  text = text.substr(0, percent);
  return true;
}

/// `[address]` or `[address]:port`: leaves the address.
bool cut_brackets(std::string_view& text) noexcept {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return false;
  const std::string_view after = text.substr(close + 1);
  if (!after.empty() && (after.front() != ':' || !is_port(after.substr(1)))) return false;
  text = text.substr(1, close - 1);
  return text.find(':') != std::string_view::npos;  // brackets are for IPv6
}

/// `192.0.2.1:80`: one colon only, or it is part of an IPv6 address.
bool cut_port(std::string_view& text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) return true;
  if (!is_port(text.substr(colon + 1))) return false;
  text = text.substr(0, colon);
  return true;
}

bool in_range(const TrustedRecord& range, const ClientAddress& address) noexcept {
  if (range.bytes != address.bytes) return false;
  const std::size_t whole = range.prefix_bits / 8;
  if (std::memcmp(range.octets, address.octets, whole) != 0) return false;
  const unsigned rest = range.prefix_bits % 8;
  return rest == 0 || ((range.octets[whole] ^ address.octets[whole]) >> (8 - rest)) == 0;
}

bool is_trusted(const RulesView& rules, const ClientAddress& address) noexcept {
  const auto trusted = rules.block().trusted;
  return std::any_of(trusted.begin(), trusted.end(),
                     [&](const TrustedRecord& range) { return in_range(range, address); });
}

/// Takes the right-most element off the list.
std::string_view take_last(std::string_view& list) noexcept {
  const std::size_t comma = list.rfind(',');
  const std::string_view last = comma == std::string_view::npos ? list : list.substr(comma + 1);
  list = list.substr(0, comma == std::string_view::npos ? 0 : comma);
  return trimmed(last);
}

}  // namespace

bool parse_ip(std::string_view text, ClientAddress& out) noexcept {
  out = {};
  char buffer[INET6_ADDRSTRLEN];
  if (text.size() >= sizeof buffer || text.find('\0') != std::string_view::npos) return false;
  text.copy(buffer, text.size());
  buffer[text.size()] = '\0';
  ClientAddress read;
  read.bytes = text.find(':') == std::string_view::npos ? 4 : 16;
  if (inet_pton(read.bytes == 4 ? AF_INET : AF_INET6, buffer, read.octets) != 1) return false;
  out = plain_address(read);
  return true;
}

bool parse_address(std::string_view text, ClientAddress& out) noexcept {
  out = {};
  const bool cut = text.starts_with('[') ? cut_brackets(text) : cut_port(text);
  return cut && cut_zone(text) && parse_ip(text, out);
}

ClientAddress plain_address(const ClientAddress& address) noexcept {
  if (address.bytes == 4) return address;
  if (address.bytes != 16) return {};
  if (std::memcmp(address.octets, kMappedPrefix, sizeof kMappedPrefix) != 0) return address;
  ClientAddress plain;
  plain.bytes = 4;
  std::memcpy(plain.octets, address.octets + sizeof kMappedPrefix, 4);
  return plain;
}

void clear_after_prefix(ClientAddress& address, unsigned prefix_bits) noexcept {
  if (prefix_bits >= address.bytes * 8U) return;
  for (unsigned i = 0; i < address.bytes; ++i) {
    const unsigned kept = prefix_bits > i * 8 ? std::min(prefix_bits - i * 8, 8U) : 0;
    address.octets[i] = static_cast<std::uint8_t>(address.octets[i] & (0xff00U >> kept));
  }
}

bool client_behind_proxies(const RulesView& rules, const Forwarded& from, ClientAddress& out) noexcept {
  if (!parse_address(trimmed(from.peer), out)) return false;
  std::string_view list = from.forwarded_for;
  for (std::size_t hops = 0; hops < kForwardedHopsMax && !list.empty() && is_trusted(rules, out); ++hops) {
    ClientAddress hop;
    if (!parse_address(take_last(list), hop)) break;
    out = hop;
  }
  return true;
}

}  // namespace popgate
