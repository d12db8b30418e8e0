// SPDX-License-Identifier: Apache-2.0
#include "replay/log_time.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::seconds;

// Seconds since 1970 below come from `date -u -d '...' +%s`.
std::int64_t seconds_of(std::string_view text) {
  LogTime time;
  const char* wrong = parse_log_time(text, time);
  EXPECT_EQ(wrong, nullptr) << text << ": " << wrong;
  return time.time.time_since_epoch().count() / 1'000'000;
}

bool is_odd(std::string_view text) {
  LogTime time;
  EXPECT_EQ(parse_log_time(text, time), nullptr) << text;
  return time.odd;
}

std::string refusal(std::string_view text) {
  LogTime time;
  const char* wrong = parse_log_time(text, time);
  return wrong == nullptr ? "" : wrong;
}

TEST(LogTime, zone_offset_is_taken_off) {
  EXPECT_EQ(seconds_of("10/Oct/2000:13:55:36 -0700"), 971'211'336);
  EXPECT_EQ(seconds_of("10/Oct/2000:20:55:36 +0000"), 971'211'336);
  EXPECT_EQ(seconds_of("22/Jan/2019:03:56:14 +0330"), 1'548'116'774);
  EXPECT_EQ(seconds_of("22/Jan/2019:03:56:14 +0545"), 1'548'108'674);
  EXPECT_FALSE(is_odd("10/Oct/2000:13:55:36 -0700"));
}

TEST(LogTime, leap_years_are_right_up_to_2100) {
  EXPECT_EQ(seconds_of("29/Feb/2000:00:00:00 +0000"), 951'782'400);
  EXPECT_EQ(seconds_of("29/Feb/2024:12:00:00 +0000"), 1'709'208'000);
  EXPECT_EQ(seconds_of("01/Mar/2100:00:00:00 +0000"), 4'107'542'400);
  EXPECT_EQ(seconds_of("31/Dec/2100:23:59:59 +0000"), 4'133'980'799);
  EXPECT_EQ(refusal("29/Feb/2100:00:00:00 +0000"), "the month has no such day");
  EXPECT_EQ(refusal("29/Feb/2023:00:00:00 +0000"), "the month has no such day");
  EXPECT_EQ(refusal("31/Apr/2023:00:00:00 +0000"), "the month has no such day");
  EXPECT_EQ(refusal("00/Apr/2023:00:00:00 +0000"), "the month has no such day");
}

TEST(LogTime, time_without_a_zone_is_refused_with_that_reason) {
  EXPECT_NE(refusal("27/Jun/2013:11:55:44").find("no zone offset"), std::string::npos);
  EXPECT_NE(refusal("31/Jan/2015:14:29:44 ").find("no zone offset"), std::string::npos);
  EXPECT_NE(refusal("2013-06-27T11:55:44").find("no zone offset"), std::string::npos);
}

TEST(LogTime, impossible_fields_are_refused) {
  EXPECT_NE(refusal("10/Okt/2000:13:55:36 -0700"), "");
  EXPECT_NE(refusal("10/Oct/1969:13:55:36 -0700"), "");
  EXPECT_NE(refusal("10/Oct/2101:13:55:36 -0700"), "");
  EXPECT_NE(refusal("10/Oct/2000:24:00:00 -0700"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:60:00 -0700"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55:61 -0700"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55:36 -1600"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55:36 -0760"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55:36 0700"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55:36 -07000"), "");
  EXPECT_NE(refusal("10/Oct/2000:13:55 -0700"), "");
  EXPECT_NE(refusal(""), "");
}

TEST(LogTime, leap_second_is_the_first_of_the_next_minute) {
  EXPECT_EQ(seconds_of("31/Dec/2016:23:59:60 +0000"), 1'483'228'800);
}

TEST(LogTime, unusual_spellings_of_one_instant_are_read_and_marked) {
  for (const char* text : {"9/Oct/2000:13:55:36 +0000", " 09/Oct/2000:13:55:36 +0000", "09/oct/2000:13:55:36 +0000",
                           "09/Oct/2000:13:55:36 +00:00", "09/Oct/2000:13:55:36+0000", "09/Oct/2000:13:55:36 Z",
                           "2000-10-09T13:55:36Z", "2000-10-09T15:55:36+02:00", "2000-10-09 13:55:36 +0000"}) {
    EXPECT_EQ(seconds_of(text), 971'099'736) << text;
    EXPECT_TRUE(is_odd(text)) << text;
  }
}

TEST(LogTime, fraction_is_kept_to_the_microsecond) {
  LogTime time;
  ASSERT_EQ(parse_log_time("09/Oct/2000:13:55:36.1234567 +0000", time), nullptr);
  EXPECT_EQ(time.time.time_since_epoch(), microseconds(971'099'736'123'456));
  ASSERT_EQ(parse_log_time("09/Oct/2000:13:55:36.5 +0000", time), nullptr);
  EXPECT_EQ(time.time.time_since_epoch(), microseconds(971'099'736'500'000));
  EXPECT_NE(refusal("09/Oct/2000:13:55:36. +0000"), "");
}

TEST(LogTime, text_of_a_time_reads_back_as_the_same_instant) {
  for (const std::int64_t us : {std::int64_t{0}, std::int64_t{951'782'400'000'000}, std::int64_t{4'133'980'799'999'999},
                                std::int64_t{971'099'736'500'000}}) {
    LogTime time;
    const std::string text = log_time_text(PopInstant(microseconds(us)));
    ASSERT_EQ(parse_log_time(text, time), nullptr) << text;
    EXPECT_EQ(time.time.time_since_epoch().count(), us) << text;
  }
  EXPECT_EQ(log_time_text(PopInstant(seconds(1'431'857'100))), "2015-05-17T10:05:00Z");
}

TEST(LogTime, only_what_begins_like_a_time_is_taken_for_one) {
  EXPECT_TRUE(begins_like_log_time("10/Oct/2000:13:55:36 -0700]"));
  EXPECT_TRUE(begins_like_log_time("10/Oct/2000"));
  EXPECT_TRUE(begins_like_log_time("2000-10-10T13:55:36Z"));
  EXPECT_FALSE(begins_like_log_time("Thu Oct 13 12:24:49.945365 2022"));
  EXPECT_FALSE(begins_like_log_time("error"));
  EXPECT_FALSE(begins_like_log_time("2869"));
  EXPECT_FALSE(begins_like_log_time("::1"));
  EXPECT_FALSE(begins_like_log_time(""));
}

}  // namespace
}  // namespace popgate
