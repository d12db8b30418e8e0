// SPDX-License-Identifier: Apache-2.0
#include "replay/log_client.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "daemon/fnv_hash.h"

namespace popgate {
namespace {

constexpr std::size_t kAddressTextMax = 45;  // INET6_ADDRSTRLEN without its zero

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_zone(std::string_view text) { return text.substr(0, text.find('%')); }

// An IPv4 client that reached an IPv6 socket is the IPv4 client.
void unmap_v4(ClientAddress& address) {
  static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (address.bytes != 16 || std::memcmp(address.octets, kMapped, sizeof kMapped) != 0) return;
  ClientAddress v4;
  std::memcpy(v4.octets, address.octets + 12, 4);
  v4.bytes = 4;
  address = v4;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// With a final mix: only has to tell names apart; nothing here faces an attacker.
std::uint64_t name_hash(std::string_view name) {
  FnvHash lower_case;
  for (const char c : name) lower_case.add(static_cast<unsigned char>(lower(c)));
  std::uint64_t hash = lower_case.value();
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

}  // namespace

std::string_view bare_client(std::string_view text) {
  if (text.size() > 1 && text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close != std::string_view::npos) return without_zone(text.substr(1, close - 1));
  }
  if (is_address(without_zone(text))) return without_zone(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !all_digits(text.substr(colon + 1))) return text;
  const std::string_view host = without_zone(text.substr(0, colon));
  const bool one_colon = text.find(':') == colon;
  return one_colon || is_address(host) ? host : text;
}

bool is_address(std::string_view bare, ClientAddress* out) {
  if (bare.size() < 2 || bare.size() > kAddressTextMax) return false;
  char text[kAddressTextMax + 1] = {};
  std::memcpy(text, bare.data(), bare.size());
  ClientAddress address;
  if (inet_pton(AF_INET, text, address.octets) == 1) {
    address.bytes = 4;
  } else if (bare.find(':') != std::string_view::npos && inet_pton(AF_INET6, text, address.octets) == 1) {
    address.bytes = 16;
  } else {
    return false;
  }
  unmap_v4(address);
  if (out != nullptr) *out = address;
  return true;
}

bool is_client_text(std::string_view text) {
  const bool fits = std::all_of(text.begin(), text.end(), [](char c) {
    return is_alnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']' || c == '%';
  });
  return fits && std::any_of(text.begin(), text.end(), is_alnum);
}

ClientAddress client_address_of(std::string_view bare) {
  ClientAddress address;
  if (is_address(bare, &address)) return address;
  const std::uint64_t hash = name_hash(bare);
  address.bytes = 16;
  address.octets[0] = 0xfd;
  // 56 bits decide the /64, which is what IPv6 rules count by; the rest of the hash goes into the interface part.
  for (int i = 1; i < 8; ++i) address.octets[i] = static_cast<std::uint8_t>(hash >> (8 * i));
  address.octets[15] = static_cast<std::uint8_t>(hash);
  return address;
}

}  // namespace popgate
