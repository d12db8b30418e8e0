// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_text.h"

#include <time.h>

#include <cstdint>

namespace popgate {
namespace {

struct Unit {
  char name;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}};

tm local_calendar(PopInstant instant) {
  const time_t seconds = std::chrono::floor<std::chrono::seconds>(instant.time_since_epoch()).count();
  tm calendar{};
  localtime_r(&seconds, &calendar);
  return calendar;
}

std::string formatted(const tm& calendar, const char* format) {
  char buffer[64];
  return {buffer, strftime(buffer, sizeof buffer, format, &calendar)};
}

}  // namespace

std::string remaining_text(milliseconds duration) {
  if (duration <= milliseconds(0)) return "0s";
  if (duration < std::chrono::seconds(1)) return std::to_string(duration.count()) + "ms";
  std::int64_t seconds = std::chrono::ceil<std::chrono::seconds>(duration).count();
  std::string text;
  int parts = 0;
  for (const Unit& unit : kUnits) {
    const std::int64_t count = seconds / unit.seconds;
    seconds %= unit.seconds;
    if (count == 0 && parts == 0) continue;
    if (count > 0) text.append(parts == 0 ? "" : " ").append(std::to_string(count)).push_back(unit.name);
    if (++parts == 2) break;
  }
  return text;
}

std::optional<PopInstant> parse_utc(std::string_view text) {
  tm calendar{};
  int read = 0;
  double seconds = 0;
  const std::string copy(text.substr(0, 64));
  const int fields = std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &calendar.tm_year, &calendar.tm_mon,
                                 &calendar.tm_mday, &calendar.tm_hour, &calendar.tm_min, &seconds, &read);
  if (fields != 6 || static_cast<std::size_t>(read) != text.size()) return std::nullopt;
  if (!(seconds >= 0 && seconds < 61)) return std::nullopt;
  calendar.tm_year -= 1900;
  calendar.tm_mon -= 1;
  const time_t minute = timegm(&calendar);
  return PopInstant(std::chrono::seconds(minute) + microseconds(static_cast<std::int64_t>(seconds * 1e6)));
}

std::string local_time(PopInstant time, PopInstant now) {
  const tm calendar = local_calendar(time);
  const tm today = local_calendar(now);
  const bool is_today = calendar.tm_year == today.tm_year && calendar.tm_yday == today.tm_yday;
  return formatted(calendar, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S");
}

std::string local_zone(PopInstant now) { return formatted(local_calendar(now), "%Z"); }

}  // namespace popgate
