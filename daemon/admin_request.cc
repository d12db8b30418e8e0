// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_request.h"

#include <cstdint>

#include "libclient/hex.h"

namespace popgate {
namespace {

constexpr std::string_view kUpperHexDigits = "0123456789ABCDEF";

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

// Cuts off and returns what stands before `separator`; everything when there is none.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return taken;
}

}  // namespace

std::optional<std::string> AdminRequest::value(std::string_view name) const {
  for (const auto& [its_name, its_value] : query) {
    if (its_name == name) return its_value;
  }
  return std::nullopt;
}

std::vector<std::string> AdminRequest::values(std::string_view name) const {
  std::vector<std::string> all;
  for (const auto& [its_name, its_value] : query) {
    if (its_name == name) all.push_back(its_value);
  }
  return all;
}

Result<AdminRequest> decode_admin_request(std::string_view query, std::string body) {
  AdminRequest request;
  request.body = std::move(body);
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    if (value.empty()) continue;
    if (request.query.size() == kAdminQueryPairsMax) {
      return Error{"the query has too many parts, allowed: " + std::to_string(kAdminQueryPairsMax)};
    }
    const std::string_view name = take_until(value, '=');
    std::optional<std::string> plain_name = percent_decode(name);
    std::optional<std::string> plain_value = percent_decode(value);
    if (!plain_name || !plain_value) {
      return Error{"the query has a % without two hexadecimal digits, in the part that begins with " +
                   std::string(name)};
    }
    request.query.emplace_back(*std::move(plain_name), *std::move(plain_value));
  }
  return request;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return plain;
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c)) {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(c);
    encoded.append({'%', kUpperHexDigits[byte >> 4], kUpperHexDigits[byte & 15]});
  }
  return encoded;
}

}  // namespace popgate
