// SPDX-License-Identifier: Apache-2.0
#include "daemon/log_limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace popgate {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr HostInstant kStart{std::chrono::hours(1)};

TEST(LogLimiter, a_burst_passes_and_then_one_line_in_ten_seconds) {
  LogLimiter limiter;
  for (unsigned i = 0; i < LogLimiter::kBurst; ++i) EXPECT_TRUE(limiter.allow(kStart));
  EXPECT_FALSE(limiter.allow(kStart));
  EXPECT_FALSE(limiter.allow(kStart + seconds(10) - microseconds(1)));
  EXPECT_TRUE(limiter.allow(kStart + seconds(10)));
  EXPECT_FALSE(limiter.allow(kStart + seconds(10)));
  EXPECT_EQ(limiter.withheld_text(), " (3 such lines withheld before)");
  EXPECT_EQ(limiter.withheld_text(), "");
  for (unsigned i = 0; i < LogLimiter::kBurst; ++i) EXPECT_TRUE(limiter.allow(kStart + minutes(9))) << "a new burst";
}

// However often it is asked and with whatever pauses.
TEST(LogLimiter, no_minute_has_more_lines_than_it_says) {
  std::mt19937_64 random(7);
  for (const auto apart : {microseconds(50), microseconds(3'000), microseconds(2'000'000), microseconds(9'900'000)}) {
    LogLimiter limiter;
    std::deque<HostInstant> lines;
    std::size_t most = 0;
    HostInstant now = kStart;
    for (int i = 0; i < 200'000; ++i) {
      now += microseconds(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * apart.count())));
      if (random() % 50'000 == 0) now += minutes(5);
      if (limiter.allow(now)) lines.push_back(now);
      while (!lines.empty() && now - lines.front() >= minutes(1)) lines.pop_front();
      most = std::max(most, lines.size());
    }
    EXPECT_LE(most, LogLimiter::kLinesInAMinuteMax) << apart.count();
  }
}

}  // namespace
}  // namespace popgate
