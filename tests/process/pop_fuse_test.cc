// SPDX-License-Identifier: Apache-2.0
//
// A rule that blocks more than its share of a running PoP is turned off on every node, and one that does not is not.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using nlohmann::json;

constexpr char kRules[] =
    "  - {name: greedy, match: {path: /greedy}, key: [path], limit: 1, window: 1h, mitigate: 1h, max_blocked_share: "
    "30}\n"
    "  - {name: modest, match: {path: /modest}, key: [path], limit: 1, window: 1h, mitigate: 1h, max_blocked_share: "
    "30}\n";

/// Ten requests at a time: six that `greedy` blocks, one that `modest` does, three that nothing does.
class Traffic {
 public:
  explicit Traffic(const Node& node) : worker_(node) {}
  [[nodiscard]] bool attach() { return worker_.attach(); }
  void round() {
    for (int i = 0; i < 6; ++i) (void)worker_.request("203.0.113.1", "/greedy");
    (void)worker_.request("203.0.113.1", "/modest");
    for (int i = 0; i < 3; ++i) (void)worker_.request("203.0.113.1", "/free");
    worker_.tick();
  }
  [[nodiscard]] bool is_blocked(const std::string& path) { return worker_.is_blocked("203.0.113.1", path); }

 private:
  Worker worker_;
};

bool off(Node& node, const std::string& rule) {
  const json said = node.get("/enforce");
  for (const json& order : said["orders"]) {
    if (order["rule"] == rule && order["off"] == true && order["scope"] == "pop" && order["origin"] == "fuse")
      return true;
  }
  return false;
}

TEST(PopFuse, a_rule_over_its_share_logs_only_on_every_node_until_an_operator_says_on_and_blows_again_if_it_still_is) {
  Pop pop({.nodes = 2, .shards = 1, .proxy = false, .rules = kRules});
  Traffic one(pop.node(0));
  Traffic other(pop.node(1));
  ASSERT_TRUE(one.attach() && other.attach());
  const auto both_off_while_requests_flow = [&] {
    return eventually(
        [&] {
          for (int i = 0; i < 5; ++i) one.round(), other.round();
          return off(pop.node(0), "greedy") && off(pop.node(1), "greedy");
        },
        std::chrono::seconds(40));
  };
  one.round();
  ASSERT_TRUE(eventually([&] {
    one.round(), other.round();
    return one.is_blocked("/greedy") && other.is_blocked("/greedy") && one.is_blocked("/modest");
  }));
  ASSERT_TRUE(both_off_while_requests_flow())
      << ask_admin(pop.node(0).admin_socket(), "GET", "/enforce").body
      << pop.node(0).metric("popgate_collect_requests_total") << " requests, judged "
      << pop.node(0).metric("popgate_fuse_judged") << ", share " << pop.node(0).metric("popgate_fuse_share_ratio");
  for (Traffic* traffic : {&one, &other}) {
    EXPECT_FALSE(traffic->is_blocked("/greedy"));
    EXPECT_TRUE(traffic->is_blocked("/modest"));
  }
  EXPECT_FALSE(off(pop.node(0), "modest"));

  (void)pop.node(1).post("/enforce", {{"state", "on"}, {"rule", "greedy"}, {"pop", true}});
  ASSERT_TRUE(eventually([&] { return one.is_blocked("/greedy"); }));
  EXPECT_FALSE(off(pop.node(0), "greedy")) << "the old figures do not blow it at once";
  EXPECT_TRUE(both_off_while_requests_flow()) << "a rule that is still over blows again";
}

}  // namespace
}  // namespace popgate::process
