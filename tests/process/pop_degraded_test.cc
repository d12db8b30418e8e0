// SPDX-License-Identifier: Apache-2.0
//
// A PoP of two daemons whose only shard is gone: what each rule's on_counter_failure does, and that everything decided
// so says it, on the node that decided and on its peer, also after a restart.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/process/pop.h"

namespace popgate::process {
namespace {

constexpr char kRules[] =
    "  - {name: local, match: {path: /local}, key: [client_ip], limit: 20, window: 1h, mitigate: 10m}\n"
    "  - {name: certain, match: {path: /certain}, key: [client_ip], limit: 20, window: 1h, mitigate: 10m, policy: "
    "certain}\n"
    "  - {name: open, match: {path: /open}, key: [client_ip], limit: 20, window: 1h, mitigate: 10m, "
    "on_counter_failure: open}\n"
    "  - {name: closed, match: {path: /closed}, key: [client_ip], limit: 20, window: 1h, mitigate: 10m, "
    "on_counter_failure: closed}\n";
constexpr char kClient[] = "203.0.113.7";

class PopDegraded : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(worker_.attach());
    pop_.shard(0).kill();
    for (std::size_t i = 0; i < pop_.nodes(); ++i) {
      ASSERT_TRUE(eventually([&] { return is_degraded(i); }));
    }
  }
  bool is_degraded(std::size_t node) {
    return pop_.node(node).get("/status")["counters"]["shards"][0]["degraded"].get<bool>();
  }
  void request(const std::string& path, int times) {
    for (int i = 0; i < times; ++i) {
      worker_.request(kClient, path);
      worker_.tick();
    }
  }
  bool becomes(bool blocked, const std::string& path) {
    return eventually([&] {
      worker_.tick();
      return worker_.is_blocked(kClient, path) == blocked;
    });
  }
  /// What the node says of the rule's only mitigation.
  nlohmann::json entry(std::size_t node, const std::string& rule) {
    const auto told = pop_.node(node).get("/mitigations?rule=" + rule)["mitigations"];
    return told.empty() ? nlohmann::json() : told[0];
  }
  /// Hits of the rule that this node holds back.
  std::uint64_t pending(const std::string& rule) {
    return pop_.node(0).get("/rules?rule=" + rule)["rules"][0]["hits"]["pending"].get<std::uint64_t>();
  }
  bool hold(const std::string& rule, std::uint64_t hits) {
    return eventually([&] {
      worker_.tick();
      return pending(rule) == hits;
    });
  }

  Pop pop_{{.nodes = 2, .shards = 1, .proxy = false, .rules = kRules}};
  Worker worker_{pop_.node(0)};
};

TEST_F(PopDegraded, rules_do_what_they_say_and_every_decision_is_labelled) {
  request("/local", 10);  // its half of the limit
  request("/open", 60);
  request("/certain", 20);
  ASSERT_TRUE(hold("local", 10) && hold("open", 60) && hold("certain", 20));
  for (const char* path : {"/local", "/open", "/certain"}) EXPECT_FALSE(worker_.is_blocked(kClient, path)) << path;
  request("/local", 1);
  request("/certain", 1);
  request("/closed", 1);
  EXPECT_TRUE(becomes(true, "/local"));
  EXPECT_TRUE(becomes(true, "/certain"));
  EXPECT_TRUE(becomes(true, "/closed"));
  EXPECT_FALSE(worker_.is_blocked(kClient, "/open"));

  EXPECT_EQ(entry(0, "local")["evidence"]["under"], "local");
  EXPECT_EQ(entry(0, "local")["evidence"]["limit"], 10);
  EXPECT_EQ(entry(0, "certain")["evidence"]["limit"], 20);
  EXPECT_EQ(entry(0, "certain")["evidence"]["lo"], 21);
  EXPECT_EQ(entry(0, "closed")["evidence"]["under"], "closed");
  ASSERT_TRUE(eventually([&] { return !entry(1, "local").is_null() && !entry(1, "closed").is_null(); }));
  EXPECT_EQ(entry(1, "local")["evidence"]["under"], "local") << "the label travels";
  EXPECT_EQ(entry(1, "closed")["evidence"]["under"], "closed");

  pop_.node(0).kill();
  pop_.node(0).start();
  ASSERT_TRUE(eventually([&] { return !entry(0, "local").is_null(); }));
  EXPECT_EQ(entry(0, "local")["evidence"]["under"], "local") << "the label is recorded";
}

TEST_F(PopDegraded, closed_lasts_as_long_as_the_failure_and_held_hits_are_counted_once) {
  request("/closed", 1);
  ASSERT_TRUE(becomes(true, "/closed"));
  const std::uint64_t counter = entry(0, "closed")["version"]["counter"].get<std::uint64_t>();
  ASSERT_TRUE(eventually([&] { return entry(0, "closed")["version"]["counter"].get<std::uint64_t>() > counter; }))
      << "renewed";
  EXPECT_TRUE(worker_.is_blocked(kClient, "/closed"));
  pop_.shard(0).start();
  EXPECT_TRUE(becomes(false, "/closed"));
  EXPECT_FALSE(is_degraded(0));
  EXPECT_EQ(pop_.counters_sum(), 1U);
}

}  // namespace
}  // namespace popgate::process
