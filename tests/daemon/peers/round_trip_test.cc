// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/round_trip.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

TEST(RoundTrip, the_quickest_exchange_tells_the_skew) {
  RoundTrip round_trip;
  EXPECT_FALSE(round_trip.quickest());
  round_trip.add({microseconds(900), microseconds(5000)});
  round_trip.add({microseconds(100), microseconds(20)});
  round_trip.add({microseconds(800), microseconds(-300)});
  ASSERT_TRUE(round_trip.quickest());
  EXPECT_EQ(round_trip.quickest()->rtt, microseconds(100));
  EXPECT_EQ(round_trip.quickest()->their_wall, microseconds(20));
}

TEST(RoundTrip, an_old_exchange_is_forgotten) {
  RoundTrip round_trip;
  round_trip.add({microseconds(1), microseconds(7)});
  for (std::size_t i = 0; i < kRoundTripSamples; ++i) round_trip.add({microseconds(50), microseconds(9)});
  EXPECT_EQ(round_trip.quickest()->their_wall, microseconds(9));
}

// Exchanged when the boot-time clock showed 100 s and the peer's wall clock 1,000 s.
TEST(RoundTrip, a_step_of_our_own_clock_shows_at_once) {
  const RoundTrip::Sample sample{microseconds(100), std::chrono::seconds(900)};
  const HostInstant now{std::chrono::seconds(150)};
  EXPECT_EQ(sample.skew(now, PopInstant(std::chrono::seconds(1050))), microseconds(0));
  EXPECT_EQ(sample.skew(now, PopInstant(std::chrono::seconds(1050 + 3600))), -std::chrono::hours(1));
}

}  // namespace
}  // namespace popgate
