// SPDX-License-Identifier: Apache-2.0
//
// An operator stops the blocking of a running PoP and lets it go on: on one node, on all, and across restarts.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/publish/brake_file.h"
#include "tests/process/accounts.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using nlohmann::json;

constexpr char kRules[] =
    "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n"
    "  - {name: login, match: {path: /login}, key: [client_ip], limit: 5, window: 1h, mitigate: 1h}\n";
constexpr char kClient[] = "203.0.113.7";
constexpr char kOther[] = "203.0.113.8";

class PopBrakes : public ::testing::Test {
 protected:
  void start(int nodes) {
    pop_ = std::make_unique<Pop>(PopOptions{.nodes = nodes, .shards = 1, .proxy = false, .rules = kRules});
    for (std::size_t i = 0; i < pop_->nodes(); ++i) {
      workers_.push_back(std::make_unique<Worker>(pop_->node(i)));
      ASSERT_TRUE(workers_.back()->attach());
    }
  }
  void cross(const std::string& client, int limit, const std::string& path = "/") {
    for (int i = 0; i <= limit; ++i) workers_[0]->request(client, path);
    ASSERT_TRUE(everywhere(client, true, path)) << "not blocked on every node";
  }
  [[nodiscard]] bool everywhere(const std::string& client, bool blocked, const std::string& path = "/") {
    return eventually([&] {
      for (const auto& worker : workers_) {
        worker->tick();
        if (worker->is_blocked(client, path) != blocked) return false;
      }
      return true;
    });
  }
  json enforce(std::size_t node, const std::string& state, bool pop, const std::string& rule = "") {
    json body = {{"state", state}, {"pop", pop}, {"reason", "test"}};
    if (!rule.empty()) body["rule"] = rule;
    return pop_->node(node).post("/enforce", body);
  }
  [[nodiscard]] std::filesystem::path state_of(std::size_t node) const {
    return pop_->folder() / ("node-" + std::to_string(node)) / "state";
  }
  void restart(std::size_t node, bool kill) {
    if (kill) {
      pop_->node(node).kill();
    } else {
      (void)pop_->node(node).stop();
    }
    pop_->node(node).start();
    ASSERT_TRUE(workers_[node]->attach());
  }

  std::unique_ptr<Pop> pop_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(PopBrakes, off_on_one_node_is_that_nodes_and_at_once) {
  start(2);
  cross(kClient, 20);
  const json said = enforce(0, "off", false);
  EXPECT_FALSE(workers_[0]->is_blocked(kClient)) << "the answer comes after the fact";
  EXPECT_TRUE(workers_[1]->is_blocked(kClient));
  EXPECT_EQ(said["blocking"], false);
  EXPECT_EQ(said["written"], true);
  EXPECT_EQ(said["orders"][0]["scope"], "node");
  EXPECT_EQ(said["orders"][0]["reason"], "test");
  EXPECT_EQ(pop_->node(0).get("/mitigations")["mitigations"][0]["off"], true);
  EXPECT_EQ(pop_->node(0).get("/mitigations")["mitigations"][0]["enforced"], false);
  EXPECT_EQ(pop_->node(0).get("/status")["enforcement"]["blocking"], false);
  (void)enforce(0, "on", false);
  EXPECT_TRUE(workers_[0]->is_blocked(kClient));
}

TEST_F(PopBrakes, counting_and_deciding_go_on_while_blocking_is_off_on_every_node) {
  start(2);
  (void)enforce(1, "off", true);
  ASSERT_TRUE(eventually([&] { return pop_->node(0).get("/enforce")["blocking"] == false; }));
  for (int i = 0; i <= 20; ++i) EXPECT_FALSE(workers_[0]->request(kClient));
  ASSERT_TRUE(eventually([&] { return pop_->node(1).get("/mitigations")["total"] == 1; })) << "nothing was decided";
  EXPECT_FALSE(workers_[1]->is_blocked(kClient));
  EXPECT_EQ(total_account(*pop_, "all").recorded, 21U);
  (void)workers_[0]->request(kClient);
  EXPECT_EQ(workers_[0]->statistics().would_block, 1U);
  (void)enforce(0, "on", true);
  EXPECT_TRUE(everywhere(kClient, true));
}

TEST_F(PopBrakes, one_rule_goes_off_and_the_others_and_operators_blocks_stand) {
  start(2);
  cross(kClient, 5, "/login");
  (void)pop_->node(0).post("/block", {{"rule", "login"}, {"values", {kOther}}, {"for_ms", 600000}});
  ASSERT_TRUE(everywhere(kOther, true, "/login"));
  (void)enforce(0, "off", true, "login");
  EXPECT_TRUE(everywhere(kClient, false, "/login"));
  EXPECT_TRUE(everywhere(kOther, true, "/login"));
  for (int i = 0; i <= 20; ++i) workers_[0]->request(kClient);
  EXPECT_TRUE(everywhere(kClient, true));
}

TEST_F(PopBrakes, orders_hold_across_restarts_and_reach_a_node_that_was_away) {
  start(2);
  cross(kClient, 20);
  (void)pop_->node(1).stop();
  (void)enforce(0, "off", true);
  EXPECT_TRUE(workers_[1]->is_blocked(kClient)) << "a node that is away blocks as it did";
  pop_->node(1).start();
  EXPECT_TRUE(everywhere(kClient, false));
  restart(0, true);
  restart(1, false);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(everywhere(kClient, false));
  (void)enforce(1, "on", true);
  EXPECT_TRUE(everywhere(kClient, true));
}

TEST_F(PopBrakes, a_damaged_file_is_told_and_what_was_off_stays_off) {
  start(1);
  cross(kClient, 20);
  (void)enforce(0, "off", false);
  pop_->node(0).kill();
  bool damaged = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(pop_->folder())) {
    if (entry.path().filename() != "brakes") continue;
    std::ofstream(entry.path()) << "rubbish";
    damaged = true;
  }
  ASSERT_TRUE(damaged);
  pop_->node(0).start();
  ASSERT_TRUE(workers_[0]->attach());
  EXPECT_FALSE(workers_[0]->is_blocked(kClient));
  const json said = pop_->node(0).get("/enforce");
  EXPECT_EQ(said["orders"][0]["origin"], "recovered");
  EXPECT_NE(pop_->node(0).process().output().find("brakes.refused"), std::string::npos);
}

TEST_F(PopBrakes, off_for_the_pop_on_a_node_that_hears_nobody_holds_there_and_everywhere_once_somebody_is_heard) {
  start(2);
  cross(kClient, 20);
  (void)enforce(1, "on", true);  // what the node will not know when it is back
  ASSERT_TRUE(eventually([&] { return pop_->node(0).get("/enforce")["orders"].size() == 1; }));
  pop_->node(0).kill();
  pop_->node(1).kill();
  ASSERT_TRUE(std::filesystem::remove(state_of(0) / "brakes"));
  pop_->node(0).start();
  ASSERT_TRUE(workers_[0]->attach());
  const json said = enforce(0, "off", true);
  EXPECT_FALSE(workers_[0]->is_blocked(kClient));
  EXPECT_EQ(said["orders"][0]["told"], false);
  EXPECT_EQ(said["written"], true);
  pop_->node(1).start();
  ASSERT_TRUE(workers_[1]->attach());
  EXPECT_TRUE(everywhere(kClient, false));
  EXPECT_EQ(pop_->node(0).get("/enforce")["orders"][0]["told"], true);
}

TEST_F(PopBrakes, an_order_without_room_is_a_conflict_and_not_the_callers_mistake) {
  start(1);
  pop_->node(0).kill();
  Brakes full("node-0", [](const Brakes::Change&) {});
  for (std::uint64_t rule = 1; rule <= kBrakesMax; ++rule) {
    full.restore(BrakeSide::kNode, {rule, true, {rule, 1}, BrakeOrigin::kOperator, {}, "node-0", ""});
  }
  std::ofstream(state_of(0) / "brakes", std::ios::binary) << encode_brakes(full, node_id("node-0"));
  pop_->node(0).start();
  const AdminAnswer answer =
      ask_admin(pop_->node(0).admin_socket(), "POST", "/enforce", json{{"state", "off"}, {"rule", "login"}}.dump());
  EXPECT_EQ(answer.status, 409);
  EXPECT_NE(answer.body.find("4096 rules are off by themselves"), std::string::npos) << answer.body;
  EXPECT_EQ(enforce(0, "off", false)["blocking"], false) << "there is always room for everything";
}

TEST_F(PopBrakes, wrong_orders_are_refused_by_name_and_change_nothing) {
  start(1);
  const auto refused = [&](const std::string& body) {
    const AdminAnswer answer = ask_admin(pop_->node(0).admin_socket(), "POST", "/enforce", body);
    EXPECT_EQ(answer.status, 400) << body;
    return json::parse(answer.body)["error"].get<std::string>();
  };
  EXPECT_EQ(refused(R"({"state": "maybe"})"), R"(state: found "maybe", allowed: "on", "off")");
  EXPECT_EQ(refused(R"({"state": "off", "pop": 1})"), "pop: found 1, allowed: true, false");
  EXPECT_EQ(refused(R"({"state": "off", "rul": "x"})"),
            R"(body: found the field "rul", allowed: state, rule, pop, reason)");
  EXPECT_NE(refused(R"({"state": "off", "rule": "lgin"})").find(R"(rule: found "lgin")"), std::string::npos);
  EXPECT_EQ(refused("[]"), "body: found array, allowed: a JSON object");
  EXPECT_EQ(pop_->node(0).get("/enforce")["orders"].size(), 0U);
}

}  // namespace
}  // namespace popgate::process
