// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/transit.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

HostInstant at(microseconds t) { return HostInstant(t); }

TEST(Transit, the_difference_of_two_boot_clocks_cancels_out) {
  Transit transit;
  EXPECT_EQ(transit.delay(at(hours(1000)), at(seconds(5))), microseconds(0));
  EXPECT_EQ(transit.delay(at(hours(1000) + seconds(1)), at(seconds(6))), microseconds(0));
}

TEST(Transit, what_a_message_took_longer_than_the_fastest_is_its_delay) {
  Transit transit;
  (void)transit.delay(at(seconds(100)), at(seconds(7)));
  EXPECT_EQ(transit.delay(at(seconds(101)), at(seconds(7 + 1 + 30))), seconds(30));
  EXPECT_EQ(transit.delay(at(seconds(102)), at(seconds(7 + 2 - 1))), microseconds(0)) << "a faster one is the new base";
  EXPECT_EQ(transit.delay(at(seconds(103)), at(seconds(7 + 3))), seconds(1));
}

TEST(Transit, drift_is_forgotten_after_twice_its_memory) {
  Transit transit;
  // The sender's clock loses 50 us a message: without forgetting, the delay would grow to 0.4 s.
  microseconds last{0};
  for (int i = 0; i < 8000; ++i) last = transit.delay(at(seconds(i)), at(seconds(i) + microseconds(50) * i));
  EXPECT_LE(last, microseconds(50) * 2 * kTransitMessages);
}

}  // namespace
}  // namespace popgate
