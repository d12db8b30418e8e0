// SPDX-License-Identifier: Apache-2.0
#include "replay/traffic.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "replay/exact_count.h"
#include "replay/log_line.h"

namespace popgate {
namespace {

using std::chrono::seconds;

std::string all_lines(const TrafficOptions& options) {
  Traffic traffic(options);
  std::string lines;
  LoggedRequest request;
  while (traffic.next(request)) lines += combined_line(request);
  return lines;
}

TEST(Traffic, same_seed_gives_the_same_bytes_and_another_seed_others) {
  TrafficOptions options;
  options.duration = seconds(10);
  const std::string lines = all_lines(options);
  EXPECT_EQ(all_lines(options), lines);
  options.seed = 2;
  EXPECT_NE(all_lines(options), lines);
}

TEST(Traffic, every_line_is_a_strict_combined_line_with_its_own_time_and_client) {
  TrafficOptions options;
  options.duration = seconds(5);
  Traffic traffic(options);
  LoggedRequest request;
  std::string scratch;
  while (traffic.next(request)) {
    const std::string line = combined_line(request);
    AccessRecord record;
    ASSERT_EQ(
        parse_log_line(std::string_view(line).substr(0, line.size() - 1), LogFormat::kCombined, scratch, record).kind,
        LineKind::kRecord);
    ASSERT_EQ(record.lenient_why, nullptr) << line;
    ASSERT_FALSE(record.request_bad) << line;
    ASSERT_EQ(record.client, request.client_text);
    ASSERT_EQ(record.time, std::chrono::floor<seconds>(request.time));
    ASSERT_EQ(record.target, request.path);
    ASSERT_EQ(record.user_agent, request.user_agent);
  }
}

TEST(Traffic, times_rise_and_stay_within_the_duration) {
  TrafficOptions options;
  options.duration = seconds(20);
  Traffic traffic(options);
  LoggedRequest request;
  PopInstant before = options.start;
  while (traffic.next(request)) {
    ASSERT_GE(request.time, before);
    ASSERT_LT(request.time, options.start + options.duration);
    before = request.time;
  }
}

// The table in traffic.h: floods are far above 100 in 10 s, offices, crawlers and visitors far below.
TEST(Traffic, only_those_who_do_wrong_go_over_a_hundred_in_ten_seconds) {
  TrafficOptions options;
  options.duration = seconds(60);
  Traffic traffic(options);
  std::map<std::string, ActorKind> kinds;
  for (const Actor& actor : traffic.actors()) kinds[actor.address] = actor.kind;
  std::map<std::string, ExactCount> counts;
  std::map<ActorKind, std::uint64_t> peaks;
  LoggedRequest request;
  while (traffic.next(request)) {
    std::string who(request.client_text);
    if (!kinds.contains(who)) who = "2001:db8:5:1::/64";
    ASSERT_TRUE(kinds.contains(who)) << request.client_text;
    ExactCount& count = counts.try_emplace(who, seconds(10), 100).first->second;
    count.add(request.time, 1);
    peaks[kinds[who]] = std::max(peaks[kinds[who]], count.count(request.time));
  }
  EXPECT_GT(peaks[ActorKind::kFlood], 1400u);
  EXPECT_GT(peaks[ActorKind::kPulseFlood], 280u);
  EXPECT_GT(peaks[ActorKind::kSwarm], 750u);
  EXPECT_LT(peaks[ActorKind::kOffice], 42u);
  EXPECT_LT(peaks[ActorKind::kCrawler], 30u);
  EXPECT_LT(peaks[ActorKind::kVisitor], 20u);
  EXPECT_GE(peaks[ActorKind::kBruteForce], 18u);
  EXPECT_LE(peaks[ActorKind::kBruteForce], 27u);
  EXPECT_LE(peaks[ActorKind::kSlowBrute], 8u);
}

TEST(Traffic, swarm_uses_many_addresses_of_one_network) {
  TrafficOptions options;
  options.duration = seconds(20);
  Traffic traffic(options);
  LoggedRequest request;
  std::set<std::string> addresses;
  std::set<std::string> networks;
  while (traffic.next(request)) {
    if (!request.client_text.starts_with("2001:db8:5:1:")) continue;
    addresses.emplace(request.client_text);
    networks.emplace(reinterpret_cast<const char*>(request.client.octets), 8);
  }
  EXPECT_EQ(addresses.size(), 64u);
  EXPECT_EQ(networks.size(), 1u);
}

}  // namespace
}  // namespace popgate
