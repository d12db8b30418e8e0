// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/ack_latency.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::hours;

HostInstant at(std::int64_t us) { return HostInstant(microseconds(us)); }

TEST(AckLatency, one_acknowledgement_ends_all_decisions_up_to_its_number) {
  AckLatency latency;
  latency.sent(1, at(0));
  latency.sent(2, at(10));
  latency.sent(5, at(20));
  latency.acknowledged(2, at(30));
  EXPECT_EQ(latency.count(), 2U);
  EXPECT_EQ(latency.max(), microseconds(30));
  latency.acknowledged(5, at(100));
  EXPECT_EQ(latency.count(), 3U);
  EXPECT_EQ(latency.max(), microseconds(80));
}

TEST(AckLatency, quantiles_are_never_too_low_and_at_most_an_eighth_too_high) {
  AckLatency latency;
  for (int i = 1; i <= 1000; ++i) {
    latency.sent(static_cast<std::uint64_t>(i), at(0));
    latency.acknowledged(static_cast<std::uint64_t>(i), at(i));
  }
  for (const auto& [share, exact] : {std::pair{0.5, 500}, std::pair{0.99, 990}, std::pair{1.0, 1000}}) {
    EXPECT_GE(latency.quantile(share).count(), exact);
    EXPECT_LE(static_cast<double>(latency.quantile(share).count()), exact * 1.125);
  }
  EXPECT_EQ(latency.quantile(1.0), latency.max()) << "no quantile is above what was seen";
}

TEST(AckLatency, nothing_measured_is_zero_and_the_extremes_fit) {
  AckLatency latency;
  EXPECT_EQ(latency.quantile(0.5), microseconds(0));
  latency.sent(1, at(0));
  latency.acknowledged(1, at(0));
  EXPECT_EQ(latency.quantile(0.99), microseconds(0));
  latency.sent(2, at(0));
  latency.acknowledged(2, HostInstant(hours(24 * 365)));
  EXPECT_EQ(latency.max(), hours(24 * 365));
  EXPECT_GT(latency.quantile(1.0), hours(1));
}

TEST(AckLatency, a_lost_connection_forgets_what_was_under_way) {
  AckLatency latency;
  latency.sent(1, at(0));
  latency.forget_pending();
  latency.acknowledged(1, at(10));
  EXPECT_EQ(latency.count(), 0U);
}

TEST(AckLatency, beyond_the_bound_the_newest_are_not_timed) {
  AckLatency latency;
  for (std::uint64_t i = 1; i <= kAckPendingMax + 10; ++i) latency.sent(i, at(0));
  latency.acknowledged(kAckPendingMax + 10, at(1));
  EXPECT_EQ(latency.count(), kAckPendingMax);
}

}  // namespace
}  // namespace popgate
