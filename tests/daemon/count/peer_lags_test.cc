// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/peer_lags.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr CounterRingId kRing = 7;
constexpr CounterRingId kOther = 8;
constexpr PopInstant kNow{seconds(1000)};

PeerLag told(CounterRingId ring, std::vector<ShardLag> shards = {}) {
  return {.node = "b", .heard = true, .said_goodbye = false, .lag = CountLag{ring, std::move(shards)}};
}

class PeerLagsTest : public ::testing::Test {
 protected:
  void take(const std::vector<PeerLag>& peers) { lags_.take(peers, kNow, HostInstant(seconds(5))); }
  PeerDoubt doubt(ShardIndex shard, ShardIndex in_other = 0) const {
    const ShardIndex shards[]{shard, in_other};
    return lags_.doubt(shards);
  }
  double metric(std::string_view name) const {
    double value = -1;
    lags_.visit([&](const Metric& metric) {
      if (metric.name == name) value = metric.value;
    });
    return value;
  }

  PeerLags lags_{{{kRing, 2}, {kOther, 3}}, seconds(1)};
};

TEST_F(PeerLagsTest, a_peer_that_keeps_up_casts_no_doubt) {
  take({told(kRing), told(kOther)});
  EXPECT_FALSE(doubt(0).unknown);
  EXPECT_EQ(doubt(0).uncertain, 0U);
}

TEST_F(PeerLagsTest, hits_held_for_longer_than_counting_takes_make_their_shard_unknown) {
  take({told(kRing, {{.shard = 1, .waiting = seconds(1) + microseconds(1)}})});
  EXPECT_TRUE(doubt(1).unknown);
  EXPECT_FALSE(doubt(0).unknown);
  EXPECT_EQ(metric("popgate_count_peers_shards_lagging"), 1);
  take({told(kRing, {{.shard = 1, .waiting = seconds(1)}})});
  EXPECT_FALSE(doubt(1).unknown);
}

TEST_F(PeerLagsTest, what_was_read_before_a_doubt_was_over_has_to_be_read_again) {
  const auto take_at = [&](int second, const std::vector<PeerLag>& peers) {
    lags_.take(peers, PopInstant(seconds(second)), HostInstant(seconds(second)));
  };
  take_at(10, {told(kRing)});
  EXPECT_EQ(lags_.clear_since(0, 0), PopInstant::min());
  take_at(11, {{.node = "b", .heard = false, .said_goodbye = false, .lag = std::nullopt}});
  EXPECT_EQ(lags_.clear_since(0, 0), PopInstant::min()) << "upper bounds are unknown meanwhile";
  take_at(12, {told(kRing)});
  take_at(13, {told(kRing)});
  EXPECT_EQ(lags_.clear_since(0, 0), PopInstant(seconds(12)));
  EXPECT_EQ(lags_.clear_since(1, 2), PopInstant(seconds(12))) << "silent about every shard";
  take_at(14, {told(kRing, {{.shard = 1, .waiting = seconds(2)}})});
  take_at(15, {told(kRing)});
  EXPECT_EQ(lags_.clear_since(0, 0), PopInstant(seconds(12)));
  EXPECT_EQ(lags_.clear_since(0, 1), PopInstant(seconds(15)));
}

TEST_F(PeerLagsTest, uncertain_increments_of_all_peers_add_up_until_they_have_left_the_window) {
  take({told(kRing, {{.shard = 1, .uncertain_most = 3, .uncertain_until = kNow + seconds(1)}}),
        told(kRing, {{.shard = 1, .uncertain_most = 4, .uncertain_until = kNow + seconds(1)}}),
        told(kRing, {{.shard = 1, .uncertain_most = 100, .uncertain_until = kNow}})});
  EXPECT_EQ(doubt(1).uncertain, 7U);
  EXPECT_EQ(doubt(0).uncertain, 0U);
  EXPECT_FALSE(doubt(1).unknown);
}

TEST_F(PeerLagsTest, a_peer_that_counts_in_the_ring_that_is_also_read_is_looked_up_there) {
  take({told(kOther, {{.shard = 2, .waiting = seconds(9)}})});
  EXPECT_TRUE(doubt(0, 2).unknown);
  EXPECT_FALSE(doubt(0, 1).unknown);
}

TEST_F(PeerLagsTest, a_peer_that_counts_where_nobody_here_reads_makes_everything_unknown) {
  take({told(99)});
  EXPECT_TRUE(doubt(0).unknown);
  EXPECT_EQ(metric("popgate_count_peers_on_other_ring"), 1);
}

TEST_F(PeerLagsTest, a_peer_that_is_not_heard_does_so_too_unless_it_said_goodbye) {
  take({{.node = "b", .lag = {}}});
  EXPECT_TRUE(doubt(0).unknown);
  EXPECT_EQ(metric("popgate_count_peers_silent"), 1);
  take({{.node = "b", .said_goodbye = true, .lag = {}}});
  EXPECT_FALSE(doubt(0).unknown);
}

TEST_F(PeerLagsTest, a_peer_of_an_earlier_release_says_nothing_and_so_nothing_is_known) {
  take({{.node = "b", .heard = true, .lag = {}}});
  EXPECT_TRUE(doubt(0).unknown);
}

TEST_F(PeerLagsTest, shards_that_the_ring_does_not_have_are_ignored) {
  take({told(kRing, {{.shard = 65535, .waiting = seconds(9)}})});
  EXPECT_FALSE(doubt(0).unknown);
}

}  // namespace
}  // namespace popgate
