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
  EXPECT_EQ(round_trip.quickest()->skew, microseconds(20));
}

TEST(RoundTrip, an_old_exchange_is_forgotten) {
  RoundTrip round_trip;
  round_trip.add({microseconds(1), microseconds(7)});
  for (std::size_t i = 0; i < kRoundTripSamples; ++i) round_trip.add({microseconds(50), microseconds(9)});
  EXPECT_EQ(round_trip.quickest()->skew, microseconds(9));
}

}  // namespace
}  // namespace popgate
