// SPDX-License-Identifier: Apache-2.0
//
// The small parsers under the configuration: durations, endpoints, near names, YAML trees.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/duration.h"
#include "daemon/endpoint.h"
#include "daemon/near_name.h"
#include "daemon/yaml_tree.h"

namespace popgate {
namespace {

using std::chrono::microseconds;

TEST(Duration, needs_a_number_and_a_unit) {
  EXPECT_EQ(parse_duration("500ms"), microseconds(500'000));
  EXPECT_EQ(parse_duration("60s"), microseconds(60'000'000));
  EXPECT_EQ(parse_duration("5m"), microseconds(300'000'000));
  EXPECT_EQ(parse_duration("1h"), microseconds(3'600'000'000));
  EXPECT_EQ(parse_duration("2d"), microseconds(172'800'000'000));
  for (const char* text : {"", "60", "s", "-1s", "+1s", "1.5s", "1 s", "1S", "1w", "1s ", " 1s", "1min", "0x1s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, what_does_not_fit_64_bits_is_none) {
  EXPECT_EQ(parse_duration("106751991d"), microseconds(106751991LL * 86'400'000'000));
  EXPECT_EQ(parse_duration("106751992d"), std::nullopt);
  EXPECT_EQ(parse_duration("99999999999999999999s"), std::nullopt);
}

TEST(Duration, is_written_in_the_largest_unit_that_divides_it) {
  EXPECT_EQ(duration_text(microseconds(0)), "0s");
  EXPECT_EQ(duration_text(microseconds(90'000'000)), "90s");
  EXPECT_EQ(duration_text(microseconds(14 * 86'400'000'000)), "14d");
  EXPECT_EQ(duration_text(microseconds(1500)), "1500us");
}

RC_GTEST_PROP(Duration, what_is_written_is_read_back, ()) {
  const auto count = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);
  RC_ASSERT(parse_duration(duration_text(microseconds(count * 1000))) == microseconds(count * 1000));
}

TEST(Endpoint, what_is_written_is_read_back) {
  for (const char* text : {"127.0.0.1:11211", "[::1]:65535", "memcached-1.example.net:1", "/run/memcached.sock"}) {
    const auto endpoint = parse_endpoint(text);
    ASSERT_TRUE(endpoint.has_value()) << text;
    EXPECT_EQ(endpoint->text(), text);
  }
}

TEST(Endpoint, only_numbers_of_loopback_are_loopback) {
  EXPECT_TRUE(parse_endpoint("127.9.9.9:1")->is_loopback());
  EXPECT_TRUE(parse_endpoint("[::1]:1")->is_loopback());
  EXPECT_TRUE(parse_endpoint("[::ffff:127.0.0.1]:1")->is_loopback());
  EXPECT_FALSE(parse_endpoint("128.0.0.1:1")->is_loopback());
  EXPECT_FALSE(parse_endpoint("[::2]:1")->is_loopback());
  EXPECT_FALSE(parse_endpoint("[1::1]:1")->is_loopback());
  EXPECT_FALSE(parse_endpoint("localhost:1")->is_loopback());
  EXPECT_FALSE(parse_endpoint("/run/x")->is_loopback());
}

std::vector<std::string> places_of_faults(const std::string& text) {
  std::vector<std::string> places;
  for (const ConfigFault& fault : parse_config(text, "f").faults) {
    places.push_back(std::to_string(fault.line) + ":" + std::to_string(fault.column) + " " + fault.field);
  }
  return places;
}

TEST(AlsoRead, is_another_ring_with_servers_of_its_own) {
  const std::string start = "hash_secret_file: s\ncounters:\n  shards: [{name: a, address: \"h:1\"}]\n";
  const ConfigOutcome outcome = parse_config(
      start +
          "  also_read:\n    proxy: 127.0.0.1:3\n    shards: [{name: a, address: \"h:1\"}, {name: b, address: "
          "\"h:2\", weight: 2}]\n",
      "f");
  ASSERT_TRUE(outcome.config) << outcome.faults.front().text();
  const RingConfig& ring = *outcome.config->counters->also_read;
  ASSERT_EQ(ring.shards.size(), 2U);
  EXPECT_EQ(ring.shards[1].name, "b");
  EXPECT_EQ(ring.shards[1].weight, 2U);
  EXPECT_EQ(ring.proxy->port, 3);
  EXPECT_EQ(places_of_faults(start + "  also_read: {}\n"), std::vector<std::string>{"4:14 counters.also_read.shards"});
  EXPECT_EQ(places_of_faults(start + "  also_read: {shards: [{name: a, address: \"h:9\"}]}\n"),
            std::vector<std::string>{"4:23 counters.also_read.shards"})
      << "the same names are the same ring, wherever they listen";
}

TEST(NearName, is_the_known_name_with_the_fewest_changes) {
  const std::string_view known[] = {"limit", "window", "mitigate", "policy", "count", "cost"};
  EXPECT_EQ(near_name("limti", known), "limit");
  EXPECT_EQ(near_name("windw", known), "window");
  EXPECT_EQ(near_name("mitigation", known), "");
  EXPECT_EQ(near_name("mitigated", known), "mitigate");
  EXPECT_EQ(near_name("cots", known), "cost");
  EXPECT_EQ(near_name("", known), "");
  EXPECT_EQ(near_name(std::string(1000, 'x'), known), "");
}

TEST(YamlTree, values_know_their_place) {
  YamlTree tree;
  YamlError error;
  ASSERT_TRUE(tree.parse("a: 1\nb:\n  - x\n  - {c: \"y\"}\n", error)) << error.text;
  const YamlValue a = tree.root().first();
  EXPECT_EQ(a.text(), "a");
  EXPECT_EQ(a.next().text(), "1");
  EXPECT_EQ(a.next().column(), 4);
  const YamlValue list = a.next().next().next();
  EXPECT_EQ(list.kind(), YamlKind::kList);
  EXPECT_EQ(list.count(), 2U);
  const YamlValue map = list.first().next();
  EXPECT_EQ(map.count(), 1U);
  EXPECT_EQ(map.first().next().text(), "y");
  EXPECT_EQ(map.first().next().line(), 4);
  EXPECT_EQ(map.first().next().column(), 9);
  EXPECT_FALSE(list.next().exists());
}

TEST(YamlTree, an_alias_has_the_anchors_content_at_its_own_place) {
  YamlTree tree;
  YamlError error;
  ASSERT_TRUE(tree.parse("- &x [1, 2]\n- *x\n", error)) << error.text;
  const YamlValue alias = tree.root().first().next();
  EXPECT_EQ(alias.line(), 2);
  EXPECT_EQ(alias.count(), 2U);
  EXPECT_EQ(alias.first().next().text(), "2");
}

}  // namespace
}  // namespace popgate
