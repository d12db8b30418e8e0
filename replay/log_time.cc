// SPDX-License-Identifier: Apache-2.0
#include "replay/log_time.h"

#include <array>
#include <cstdio>

namespace popgate {
namespace {

constexpr int kYearMin = 1970;
constexpr int kYearMax = 2100;
constexpr int kZoneHoursMax =
    15;  // the largest in use is +14:00; -15 .. +15 leaves room for none that is a typing error

constexpr const char* kNotATime = "no time in the form [10/Oct/2000:13:55:36 -0700]";
constexpr const char* kNoZone = "the time has no zone offset, so the instant is ambiguous; expected +hhmm, -hhmm or Z";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Walks over the text; every step says whether it fitted.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : left_(text) {}

  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] std::string_view left() const { return left_; }
  bool skip(char c) {
    if (left_.empty() || left_[0] != c) return false;
    left_.remove_prefix(1);
    return true;
  }
  /// Between `least` and `most` digits.
  bool number(std::size_t least, std::size_t most, int& out) {
    std::size_t digits = 0;
    out = 0;
    while (digits < most && digits < left_.size() && is_digit(left_[digits])) out = out * 10 + (left_[digits++] - '0');
    left_.remove_prefix(digits);
    return digits >= least;
  }
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view left_;
};

struct Parts {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int fraction_us = 0;
  int offset_minutes = 0;
};

// 1 .. 12, or 0. `exact`: written the usual way.
int month_number(std::string_view text, bool& exact) {
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 3) return 0;
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    const std::string_view month = kMonths[i];
    if (lower(text[0]) == lower(month[0]) && lower(text[1]) == month[1] && lower(text[2]) == month[2]) {
      exact = text == month;
      return static_cast<int>(i) + 1;
    }
  }
  return 0;
}

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in_month(int year, int month) {
  static constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

const char* check(const Parts& parts) {
  if (parts.year < kYearMin || parts.year > kYearMax) return "the year is outside 1970 .. 2100";
  if (parts.month < 1 || parts.month > 12) return "the month is not one of Jan .. Dec";
  if (parts.day < 1 || parts.day > days_in_month(parts.year, parts.month)) return "the month has no such day";
  if (parts.hour > 23 || parts.minute > 59 || parts.second > 60)
    return "the time of day is outside 00:00:00 .. 23:59:60";
  return nullptr;
}

PopInstant instant_of(const Parts& parts) {
  const auto date = std::chrono::year(parts.year) / parts.month / parts.day;
  return PopInstant(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(parts.hour) +
                    std::chrono::minutes(parts.minute - parts.offset_minutes) + std::chrono::seconds(parts.second) +
                    microseconds(parts.fraction_us));
}

// ".123": anything finer than a microsecond is cut off.
bool parse_fraction(Cursor& cursor, Parts& parts, bool& odd) {
  if (!cursor.skip('.') && !cursor.skip(',')) return true;
  odd = true;
  int scale = 100'000;
  int digits = 0;
  for (int digit = 0; digits < 12 && cursor.number(1, 1, digit); ++digits) {
    parts.fraction_us += digit * scale;
    scale /= 10;
  }
  return digits > 0;
}

const char* parse_zone(Cursor& cursor, Parts& parts, bool& odd) {
  if (!cursor.skip(' ')) odd = true;
  if (cursor.left() == "Z" || cursor.left() == "UTC" || cursor.left() == "GMT") {
    odd = true;
    return nullptr;
  }
  const bool east = cursor.skip('+');
  if (!east && !cursor.skip('-')) return cursor.at_end() ? kNoZone : "the zone offset is not +hhmm, -hhmm or Z";
  int hours = 0;
  int minutes = 0;
  const bool hours_fit = cursor.number(2, 2, hours);
  if (cursor.skip(':')) odd = true;
  if (!hours_fit || !cursor.number(2, 2, minutes) || !cursor.at_end() || hours > kZoneHoursMax || minutes > 59) {
    return "the zone offset is not +hhmm or -hhmm with hh up to 15";
  }
  parts.offset_minutes = (east ? 1 : -1) * (hours * 60 + minutes);
  return nullptr;
}

bool parse_clock(Cursor& cursor, Parts& parts) {
  return cursor.number(2, 2, parts.hour) && cursor.skip(':') && cursor.number(2, 2, parts.minute) && cursor.skip(':') &&
         cursor.number(2, 2, parts.second);
}

// 10/Oct/2000:13:55:36
bool parse_clf_date(Cursor& cursor, Parts& parts, bool& odd) {
  const std::size_t before = cursor.left().size();
  if (!cursor.number(1, 2, parts.day)) return false;
  if (before - cursor.left().size() != 2) odd = true;
  if (!cursor.skip('/')) return false;
  bool exact = true;
  parts.month = month_number(cursor.take(3), exact);
  if (!exact) odd = true;
  return cursor.skip('/') && cursor.number(4, 4, parts.year) && cursor.skip(':') && parse_clock(cursor, parts);
}

// 2000-10-10T13:55:36
bool parse_iso_date(Cursor& cursor, Parts& parts) {
  return cursor.number(4, 4, parts.year) && cursor.skip('-') && cursor.number(2, 2, parts.month) && cursor.skip('-') &&
         cursor.number(2, 2, parts.day) && (cursor.skip('T') || cursor.skip(' ')) && parse_clock(cursor, parts);
}

bool is_iso(std::string_view text) { return text.size() > 4 && text[4] == '-'; }

}  // namespace

bool begins_like_log_time(std::string_view text) {
  while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == 4) return text.size() > 10 && text[4] == '-' && is_digit(text[5]) && text[7] == '-';
  return (digits == 1 || digits == 2) && text.size() > digits + 4 && text[digits] == '/' && text[digits + 4] == '/';
}

const char* parse_log_time(std::string_view text, LogTime& out) {
  bool odd = false;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1), odd = true;
  const std::size_t zone_gap = text.find_last_not_of(' ');
  text = text.substr(0, zone_gap == std::string_view::npos ? 0 : zone_gap + 1);
  Cursor cursor(text);
  Parts parts;
  const bool iso = is_iso(text);
  if (iso ? !parse_iso_date(cursor, parts) : !parse_clf_date(cursor, parts, odd)) return kNotATime;
  if (!parse_fraction(cursor, parts, odd)) return kNotATime;
  if (const char* wrong = check(parts)) return wrong;
  if (const char* wrong = parse_zone(cursor, parts, odd)) return wrong;
  out = {instant_of(parts), odd || iso};
  return nullptr;
}

std::string log_time_text(PopInstant time) {
  const auto day = std::chrono::floor<std::chrono::days>(time.time_since_epoch());
  const std::chrono::year_month_day date{std::chrono::sys_days(day)};
  const std::int64_t us = (time.time_since_epoch() - day).count();
  char text[64];
  int length = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                             static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                             static_cast<int>(us / 3'600'000'000), static_cast<int>(us / 60'000'000 % 60),
                             static_cast<int>(us / 1'000'000 % 60));
  if (us % 1'000'000 != 0) {
    length += std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), ".%06d",
                            static_cast<int>(us % 1'000'000));
    while (text[length - 1] == '0') --length;
  }
  return std::string(text, static_cast<std::size_t>(length)) + "Z";
}

}  // namespace popgate
