// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_text.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// An hour east of Greenwich, whatever the machine's time zone is and whether it has a table of them.
class CtlTextTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "CET-1", 1);
    tzset();
  }
};

TEST_F(CtlTextTest, remaining_time_is_in_its_two_largest_units) {
  EXPECT_EQ(remaining_text(minutes(4) + seconds(12)), "4m 12s");
  EXPECT_EQ(remaining_text(hours(50) + minutes(59)), "2d 2h");
  EXPECT_EQ(remaining_text(hours(24) + minutes(5)), "1d");
  EXPECT_EQ(remaining_text(hours(1)), "1h");
  EXPECT_EQ(remaining_text(hours(1) + seconds(30)), "1h");
  EXPECT_EQ(remaining_text(seconds(59)), "59s");
  EXPECT_EQ(remaining_text(milliseconds(350)), "350ms");
}

TEST_F(CtlTextTest, remaining_time_is_rounded_up_and_never_negative) {
  EXPECT_EQ(remaining_text(milliseconds(1001)), "2s");
  EXPECT_EQ(remaining_text(milliseconds(59'001)), "1m");
  EXPECT_EQ(remaining_text(milliseconds(0)), "0s");
  EXPECT_EQ(remaining_text(milliseconds(-5)), "0s");
}

TEST_F(CtlTextTest, utc_times_are_read_exactly) {
  // 1,000,000,000 s after the epoch was 2001-09-09 01:46:40 UTC.
  EXPECT_EQ(parse_utc("2001-09-09T01:46:40Z"), PopInstant(seconds(1'000'000'000)));
  EXPECT_EQ(parse_utc("2001-09-09T01:46:40.250Z"), PopInstant(seconds(1'000'000'000) + milliseconds(250)));
}

TEST_F(CtlTextTest, what_is_no_utc_time_is_not_read) {
  for (const char* bad : {"", "2001-09-09", "2001-09-09T01:46:40", "2001-09-09T01:46:40+01:00", "2001-09-09T01:46:40Zx",
                          "2001-09-09T01:46:99Z", "2001-09-09T01:46:nanZ", "now"}) {
    EXPECT_EQ(parse_utc(bad), std::nullopt) << bad;
  }
}

TEST_F(CtlTextTest, times_are_local_and_carry_a_date_on_other_days) {
  const PopInstant time(seconds(1'000'000'000));
  EXPECT_EQ(local_time(time, time + hours(1)), "02:46:40");
  EXPECT_EQ(local_time(time, time + hours(22)), "2001-09-09 02:46:40");  // past midnight here, not yet in UTC
  EXPECT_EQ(local_zone(time), "CET");
}

}  // namespace
}  // namespace popgate
