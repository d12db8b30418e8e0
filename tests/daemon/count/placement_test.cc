// SPDX-License-Identifier: Apache-2.0
//
// That libmemcached and a real nutcracker put the same key on the same shard is shown with real servers: every key is
// written through nutcracker and read straight from the server that Placement names.
#include "daemon/count/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "daemon/config.h"
#include "daemon/count/counter_key.h"
#include "tests/daemon/count/test_key.h"
#include "tests/process/memcached.h"
#include "tests/process/nutcracker.h"
#include "tests/process/text_client.h"

namespace popgate {
namespace {

std::vector<ShardConfig> shards_of(const std::vector<std::pair<std::string, std::uint32_t>>& names_and_weights) {
  std::vector<ShardConfig> shards;
  for (const auto& [name, weight] : names_and_weights) shards.push_back({name, {}, weight});
  return shards;
}

Placement placement_of(const std::vector<ShardConfig>& shards) {
  auto made = Placement::make(shards);
  EXPECT_TRUE(made) << made.error();
  return *std::move(made);
}

TEST(Placement, does_not_depend_on_addresses) {
  std::vector<ShardConfig> shards = shards_of({{"a", 1}, {"b", 1}, {"c", 1}});
  const Placement before = placement_of(shards);
  for (ShardConfig& shard : shards) shard.address = {"10.1.2.3", 11212, ""};
  const Placement after = placement_of(shards);
  EXPECT_EQ(before.ring_id(), after.ring_id());
  for (std::uint64_t i = 0; i < 500; ++i) EXPECT_EQ(before.shard_of(test_key(i)), after.shard_of(test_key(i)));
}

TEST(Placement, another_name_weight_or_order_is_another_ring) {
  std::set<CounterRingId> rings;
  rings.insert(placement_of(shards_of({{"a", 1}, {"b", 1}})).ring_id());
  rings.insert(placement_of(shards_of({{"a", 1}, {"c", 1}})).ring_id());
  rings.insert(placement_of(shards_of({{"a", 1}, {"b", 2}})).ring_id());
  rings.insert(placement_of(shards_of({{"b", 1}, {"a", 1}})).ring_id());
  rings.insert(placement_of(shards_of({{"a", 1}})).ring_id());
  EXPECT_EQ(rings.size(), 5u);
}

// By calculation: FNV-1a 64 of "1:a:1;", its halves combined by exclusive or, computed apart in Python.
TEST(Placement, ring_id_is_stable_across_releases) {
  EXPECT_EQ(placement_of(shards_of({{"a", 1}})).ring_id(), 0x2f2ffea3U);
}

TEST(Placement, keys_follow_the_weights) {
  const Placement placement = placement_of(shards_of({{"a", 1}, {"b", 2}, {"c", 5}}));
  std::map<ShardIndex, int> keys;
  for (std::uint64_t i = 0; i < 8000; ++i) ++keys[placement.shard_of(test_key(i))];
  // Shares of 1/8, 2/8, 5/8 of 8,000, within what 160 points a server on a ring scatter.
  EXPECT_NEAR(keys[0], 1000, 350);
  EXPECT_NEAR(keys[1], 2000, 500);
  EXPECT_NEAR(keys[2], 5000, 700);
}

TEST(Placement, finds_a_tag_on_every_shard_and_always_the_same) {
  const Placement placement = placement_of(shards_of({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 9}}));
  for (ShardIndex shard = 0; shard < placement.shard_count(); ++shard) {
    const auto tag = placement.tag_on(shard);
    ASSERT_TRUE(tag) << tag.error();
    EXPECT_EQ(tag->size(), kKeyTagChars);
    EXPECT_EQ(placement.shard_of(*tag), shard);
    EXPECT_EQ(*placement.tag_on(shard), *tag);
  }
}

TEST(Placement, without_shards_is_refused) { EXPECT_FALSE(Placement::make({})); }

struct RealCase {
  const char* what;
  std::vector<std::pair<std::string, std::uint32_t>> shards;
};

class AgainstTwemproxy : public ::testing::TestWithParam<RealCase> {};

TEST_P(AgainstTwemproxy, a_thousand_keys_lie_where_placement_says) {
  std::vector<std::unique_ptr<process::Memcached>> servers;
  std::vector<process::NutcrackerServer> behind;
  for (const auto& [name, weight] : GetParam().shards) {
    servers.push_back(std::make_unique<process::Memcached>());
    behind.push_back({name, servers.back()->port(), weight});
  }
  process::Nutcracker nutcracker(behind);
  const Placement placement = placement_of(shards_of(GetParam().shards));

  constexpr std::size_t kKeys = 1000;
  std::string sets;
  std::string stored;
  std::vector<std::string> gets(servers.size());
  std::vector<std::size_t> expected(servers.size());
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    CounterNames names(placement.ring_id(), test_key(i), std::chrono::seconds(10));
    const std::string name(names.of(static_cast<SlotIndex>(i)));
    sets += "set " + name + " 0 60 1\r\n1\r\n";
    stored += "STORED\r\n";
    gets[placement.shard_of(test_key(i))] += " " + name;
    ++expected[placement.shard_of(test_key(i))];
  }
  process::TextClient writer(nutcracker.port());
  ASSERT_EQ(writer.ask(sets, stored), stored);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ASSERT_GT(expected[i], 0u) << "a case without keys on a shard shows nothing about it";
    const std::string reply = process::TextClient(servers[i]->port()).ask("get" + gets[i] + "\r\n", "END\r\n");
    std::size_t values = 0;
    for (std::size_t at = reply.find("VALUE "); at != std::string::npos; at = reply.find("VALUE ", at + 1)) ++values;
    EXPECT_EQ(values, expected[i]) << "shard " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ring, AgainstTwemproxy,
    ::testing::Values(RealCase{"equal_weights", {{"shard-a", 1}, {"shard-b", 1}, {"shard-c", 1}}},
                      RealCase{"weights", {{"shard-a", 1}, {"shard-b", 2}, {"shard-c", 5}}},
                      RealCase{"steep_weights", {{"x", 1}, {"y", 17}, {"z", 40}}},
                      RealCase{"named_like_the_default_port", {{"10.0.0.1:11211", 1}, {"10.0.0.2:11211", 1}}},
                      RealCase{"named_like_another_port", {{"10.0.0.1:22122", 1}, {"10.0.0.1:22123", 3}}},
                      RealCase{"many", {{"n1", 1}, {"n2", 1}, {"n3", 1}, {"n4", 1}, {"n5", 1}, {"n6", 2}, {"n7", 3}}},
                      RealCase{"one", {{"alone", 7}}}),
    [](const auto& one) { return one.param.what; });

}  // namespace
}  // namespace popgate
