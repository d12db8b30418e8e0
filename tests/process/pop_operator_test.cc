// SPDX-License-Identifier: Apache-2.0
//
// What an operator does to a running PoP: reload, block, lift, explain, restart.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using nlohmann::json;

std::string rule_with_limit(int limit, const std::string& more = "") {
  return "  - {name: all, key: [client_ip], limit: " + std::to_string(limit) + ", window: 1h, mitigate: 1h" + more +
         "}\n";
}

constexpr char kClient[] = "203.0.113.7";

class PopOperator : public ::testing::Test {
 protected:
  void start(PopOptions options) {
    pop_ = std::make_unique<Pop>(std::move(options));
    for (std::size_t i = 0; i < pop_->nodes(); ++i) {
      workers_.push_back(std::make_unique<Worker>(pop_->node(i)));
      ASSERT_TRUE(workers_.back()->attach());
    }
  }
  // The client goes over the limit on node 0 and is blocked everywhere.
  void cross(int limit) {
    for (int i = 0; i <= limit; ++i) workers_[0]->request(kClient);
    ASSERT_TRUE(everywhere(true)) << "not blocked on every node";
  }
  [[nodiscard]] bool everywhere(bool blocked) {
    return eventually([&] {
      for (const auto& worker : workers_) {
        worker->tick();
        if (worker->is_blocked(kClient) != blocked) return false;
      }
      return true;
    });
  }
  void reload_all() {
    for (std::size_t i = 0; i < pop_->nodes(); ++i) (void)pop_->node(i).post("/reload", json::object());
  }

  std::unique_ptr<Pop> pop_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(PopOperator, raised_limit_unblocks_everywhere_and_the_counters_go_on) {
  start({.rules = rule_with_limit(20)});
  cross(20);
  pop_->configure_rules(rule_with_limit(30));
  reload_all();
  EXPECT_TRUE(everywhere(false));
  // 21 hits were counted before; the tenth more is over the limit of 30.
  for (int i = 0; i < 9; ++i) ASSERT_FALSE(workers_[1]->request(kClient));
  ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").delivered == 30; }));
  EXPECT_FALSE(workers_[0]->is_blocked(kClient));
  workers_[1]->request(kClient);
  EXPECT_TRUE(everywhere(true));
}

TEST_F(PopOperator, deleted_rule_unblocks_and_log_only_rule_would_block) {
  start({.nodes = 1, .rules = rule_with_limit(20)});
  cross(20);
  pop_->configure_rules(rule_with_limit(20, ", action: log"));
  reload_all();
  EXPECT_TRUE(everywhere(false));
  pop_->configure_rules("  - {name: other, key: [client_ip], limit: 5, window: 1h, mitigate: 1h}\n");
  reload_all();
  EXPECT_TRUE(everywhere(false));
  EXPECT_EQ(pop_->node(0).get("/rules")["rules"].size(), 1U);
}

TEST_F(PopOperator, bad_configuration_changes_nothing_and_every_fault_is_told) {
  start({.nodes = 1, .rules = rule_with_limit(20)});
  cross(20);
  const json before = pop_->node(0).get("/rules")["revision"];
  pop_->configure_rules("  - {name: all, key: [client_ip], limit: 0, window: 60, mitigate: 1h, colour: red}\n");
  const AdminAnswer answer = ask_admin(pop_->node(0).admin_socket(), "POST", "/reload");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(json::parse(answer.body)["faults"].size(), 3U) << answer.body;  // limit, window, colour
  EXPECT_EQ(pop_->node(0).get("/rules")["revision"], before);
  EXPECT_TRUE(workers_[0]->is_blocked(kClient));
}

TEST_F(PopOperator, reload_by_signal_while_hits_flow_counts_each_hit_once) {
  start({.nodes = 1, .rules = rule_with_limit(1'000'000)});
  std::uint64_t sent = 0;
  for (int round = 1; round <= 5; ++round) {
    pop_->configure_rules(rule_with_limit(1'000'000 + round));
    const json before = pop_->node(0).get("/rules")["revision"];
    for (int i = 0; i < 200; ++i, ++sent) workers_[0]->request(kClient);
    pop_->node(0).process().signal(SIGHUP);
    ASSERT_TRUE(eventually([&] {
      for (int i = 0; i < 20; ++i, ++sent) workers_[0]->request(kClient);
      workers_[0]->tick();
      return pop_->node(0).get("/rules")["revision"] != before;
    }));
  }
  ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").delivered == sent; }))
      << total_account(*pop_, "all").delivered << " of " << sent;
  EXPECT_EQ(pop_->counters_sum(), sent);
}

TEST_F(PopOperator, block_and_lift_on_one_node_hold_on_all) {
  start({.rules = rule_with_limit(20)});
  (void)pop_->node(1).post("/block", {{"rule", "all"}, {"values", {kClient}}, {"for_ms", 600000}, {"reason", "abuse"}});
  EXPECT_TRUE(everywhere(true));
  const json shown = pop_->node(2).get("/mitigations?kind=operator");
  ASSERT_EQ(shown["total"], 1);
  EXPECT_EQ(shown["mitigations"][0]["decided_by"], "node-1");
  EXPECT_EQ(shown["mitigations"][0]["reason"], "abuse");
  (void)pop_->node(2).post("/lift", {{"rule", "all"}, {"values", {kClient}}});
  EXPECT_TRUE(everywhere(false));
}

TEST_F(PopOperator, a_block_that_finds_no_room_in_the_table_says_so_and_is_told_as_not_enforced) {
  start({.nodes = 1, .rules = rule_with_limit(20), .more = "table_entries: 1024\n"});
  // Operators have a quarter of the table beside the rules' part.
  const auto block = [&](int i) {
    const std::string client = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250);
    const json body{{"rule", "all"}, {"values", {client}}, {"for_ms", 600000}};
    return ask_admin(pop_->node(0).admin_socket(), "POST", "/block", body.dump());
  };
  for (int i = 0; i < 1280; ++i) ASSERT_EQ(block(i).status, 200) << i;
  const AdminAnswer refused = block(1280);
  EXPECT_EQ(refused.status, 507);
  EXPECT_NE(refused.body.find("has no room for key"), std::string::npos) << refused.body;
  const json shown = pop_->node(0).get("/explain?rule=all&value=10.0.5.30");
  EXPECT_EQ(shown["enforced"]["no_room"], true);
  EXPECT_EQ(shown["entries"][0]["enforced"], false);
  EXPECT_EQ(pop_->node(0).get("/status")["mitigations"]["no_room"], 1);
}

TEST_F(PopOperator, lifted_client_is_not_blocked_again_by_the_hits_before_the_lift) {
  start({.rules = rule_with_limit(20)});
  cross(20);
  (void)pop_->node(2).post("/lift", {{"rule", "all"}, {"values", {kClient}}});
  ASSERT_TRUE(everywhere(false));
  // Every node counts on: one more hit each, read back together with the 21 before.
  const std::uint64_t before = total_account(*pop_, "all").delivered;
  for (const auto& worker : workers_) ASSERT_FALSE(worker->request(kClient));
  ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").delivered == before + 3; }));
  for (const auto& worker : workers_) EXPECT_FALSE(worker->is_blocked(kClient));
}

TEST_F(PopOperator, explain_says_who_decided_on_what_evidence) {
  start({.rules = rule_with_limit(20)});
  cross(20);
  const json told = pop_->node(2).get("/explain?rule=all&value=203.0.113.7");
  EXPECT_EQ(told["enforced"]["by_operator"], false);
  ASSERT_EQ(told["entries"].size(), 1U);
  EXPECT_EQ(told["entries"][0]["decided_by"], "node-0");
  EXPECT_EQ(told["entries"][0]["evidence"]["limit"], 20);
  EXPECT_EQ(told["entries"][0]["evidence"]["lo"], 21);
  const json by_key = pop_->node(0).get("/explain?key=" + told["key"].get<std::string>());
  EXPECT_EQ(by_key["rule"], "all");
  std::uint64_t known = 0;  // over one slot, or two when its edge lies between the hits
  for (const json& slot : by_key["slots"]) known += slot["known"].get<std::uint64_t>();
  EXPECT_EQ(known, 21U);
}

TEST_F(PopOperator, blocked_client_stays_blocked_while_its_daemon_is_down_and_after) {
  start({.nodes = 1, .rules = rule_with_limit(20)});
  cross(20);
  for (int round = 0; round < 3; ++round) {
    pop_->node(0).kill();
    for (int i = 0; i < 10; ++i) {
      workers_[0]->tick();
      ASSERT_TRUE(workers_[0]->is_blocked(kClient));
    }
    pop_->node(0).start();
    ASSERT_TRUE(eventually([&] {
      workers_[0]->tick();
      EXPECT_TRUE(workers_[0]->is_blocked(kClient));
      return workers_[0]->statistics().attached == 1;
    }));
  }
  EXPECT_EQ(pop_->node(0).get("/explain?rule=all&value=203.0.113.7")["entries"][0]["evidence"]["lo"], 21);
}

TEST_F(PopOperator, node_that_was_away_learns_what_it_missed) {
  start({.rules = rule_with_limit(20)});
  EXPECT_EQ(pop_->node(2).stop(), 0);
  for (int i = 0; i <= 20; ++i) workers_[0]->request(kClient);
  ASSERT_TRUE(eventually([&] { return workers_[1]->is_blocked(kClient); }));
  EXPECT_FALSE(workers_[2]->is_blocked(kClient));
  pop_->node(2).start();
  EXPECT_TRUE(everywhere(true));
}

TEST_F(PopOperator, ring_check_agrees_through_the_proxy) {
  start({.nodes = 1, .rules = rule_with_limit(20)});
  const json report = pop_->node(0).post("/ring-check", json::object());
  EXPECT_EQ(report["agrees"], true) << report.dump();
  EXPECT_EQ(report["through_proxy"], true);
  EXPECT_EQ(report["shards"].size(), 3U);
}

}  // namespace
}  // namespace popgate::process
