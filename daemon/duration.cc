// SPDX-License-Identifier: Apache-2.0
#include "daemon/duration.h"

#include <charconv>
#include <cstdint>
#include <limits>

namespace popgate {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t microseconds;
};

constexpr Unit kUnits[] = {
    {"d", 86'400'000'000}, {"h", 3'600'000'000}, {"m", 60'000'000}, {"s", 1'000'000}, {"ms", 1000}};

}  // namespace

std::optional<std::chrono::microseconds> parse_duration(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;  // no sign
  std::int64_t count = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  if (read.ec != std::errc()) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  for (const Unit& unit : kUnits) {
    if (rest != unit.name) continue;
    if (count > std::numeric_limits<std::int64_t>::max() / unit.microseconds) return std::nullopt;
    return std::chrono::microseconds(count * unit.microseconds);
  }
  return std::nullopt;
}

std::string duration_text(std::chrono::microseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (count % unit.microseconds == 0) return std::to_string(count / unit.microseconds).append(unit.name);
  }
  return std::to_string(count) + "us";
}

}  // namespace popgate
