// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_reply.h"

#include <strings.h>

#include <charconv>
#include <optional>

namespace popgate {
namespace {

constexpr std::string_view kVersions[] = {"HTTP/1.1 ", "HTTP/1.0 "};

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find("\r\n");
  const std::string_view line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 2);
  return line;
}

std::optional<int> status_of(std::string_view line) {
  for (const std::string_view version : kVersions) {
    if (!line.starts_with(version)) continue;
    const auto status = number_of<int>(line.substr(version.size(), 3));
    return status && *status >= 100 && *status <= 599 ? status : std::nullopt;
  }
  return std::nullopt;
}

// The value of the line's field when it is this one; names are compared in any case.
std::optional<std::string_view> field(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return std::nullopt;
  if (strncasecmp(line.data(), name.data(), name.size()) != 0) return std::nullopt;
  std::string_view value = line.substr(name.size() + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  while (value.ends_with(' ')) value.remove_suffix(1);
  return value;
}

}  // namespace

Result<CtlReplyHead> parse_reply_head(std::string_view head) {
  const std::optional<int> status = status_of(take_line(head));
  if (!status) return Error{"the reply does not begin like HTTP"};
  CtlReplyHead result{.status = *status};
  std::optional<std::size_t> length;
  while (!head.empty()) {
    const std::string_view line = take_line(head);
    if (const auto type = field(line, "Content-Type")) result.json = type->starts_with("application/json");
    if (const auto text = field(line, "Content-Length")) length = number_of<std::size_t>(*text);
  }
  if (!length) return Error{"the reply does not state its length"};
  if (*length > kCtlBodyBytesMax) {
    return Error{"a reply of " + std::to_string(*length) + " bytes, allowed: " + std::to_string(kCtlBodyBytesMax)};
  }
  result.body_bytes = *length;
  return result;
}

}  // namespace popgate
