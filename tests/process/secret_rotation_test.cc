// SPDX-License-Identifier: Apache-2.0
//
// The hash secret of a running PoP is changed, step by step as docs/operations.md says, under traffic.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kWindow{1000};
constexpr milliseconds kMitigate{1500};
constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1s, slots: 4, mitigate: 1500ms}\n";
constexpr char kGreedy[] = "203.0.113.1";   // as fast as it can, in every step
constexpr char kCalm[] = "203.0.113.2";     // 10 a second: counted twice it would be at the limit
constexpr char kBlocked[] = "203.0.113.3";  // by the operator
constexpr char kOld[] = "secret";
constexpr char kNew[] = "secret.new";

class SecretRotation : public ::testing::Test {
 protected:
  SecretRotation() : pop_({.nodes = 2, .shards = 2, .proxy = false, .rules = kRules}) {
    for (std::size_t i = 0; i < 2; ++i) workers_.push_back(std::make_unique<Worker>(pop_.node(i)));
    for (const auto& worker : workers_) EXPECT_TRUE(worker->attach());
    EXPECT_EQ(std::system((std::string(POPGATE_CTL) + " secret new " + file(kNew) + " >/dev/null").c_str()), 0);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (pop_.folder() / name).string(); }

  // The node's configuration with these secrets in the place of those that it has; then it reads it.
  void step(std::size_t index, const std::string& first, const std::string& option = "",
            const std::string& other = "") {
    Node& node = pop_.node(index);
    std::ifstream in(node.config_file());
    std::string text = "hash_secret_file: " + file(first) + "\n";
    if (!option.empty()) text += option + ": " + file(other) + "\n";
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("hash_secret", 0) != 0) text += line + "\n";
    }
    node.configure(text);
    EXPECT_EQ(node.post("/reload", json::object())["needs_restart"], json::array());
    drive_until([&] { return pop_.node(0).ready() && pop_.node(1).ready(); });
  }

  // One turn of the traffic: every client on both nodes, a calm one every 100 ms.
  void drive_once() {
    for (const auto& worker : workers_) {
      worker->tick();
      (void)worker->request(kGreedy);
      EXPECT_EQ(worker->is_blocked(kBlocked), blocked_) << "at a step of the change";
    }
    if (Clock::now() >= next_calm_) {
      EXPECT_FALSE(workers_[calm_turn_++ % 2]->request(kCalm)) << "below the limit";
      next_calm_ = Clock::now() + milliseconds(100);
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  void drive(milliseconds duration) {
    for (const auto end = Clock::now() + duration; Clock::now() < end;) drive_once();
  }
  template <typename Condition>
  void drive_until(Condition condition) {
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (!condition() && Clock::now() < end) drive_once();
    EXPECT_TRUE(condition());
  }
  // The greedy client's mitigation ends and begins again: the step decides too.
  void expect_mitigated_again() {
    drive_until([&] { return !is_blocked_everywhere(); });
    drive_until([&] { return is_blocked_everywhere(); });
  }
  [[nodiscard]] bool is_blocked_everywhere() {
    return workers_[0]->is_blocked(kGreedy) && workers_[1]->is_blocked(kGreedy);
  }
  void order(std::size_t node, const char* what, bool blocked) {
    json body{{"rule", "all"}, {"values", {kBlocked}}};
    if (blocked) body["for_ms"] = 3'600'000;
    (void)pop_.node(node).post(what, body);
    ASSERT_TRUE(eventually(
        [&] { return workers_[0]->is_blocked(kBlocked) == blocked && workers_[1]->is_blocked(kBlocked) == blocked; }));
    blocked_ = blocked;
  }
  [[nodiscard]] json secrets_of(std::size_t node) { return pop_.node(node).get("/status")["secrets"]; }
  [[nodiscard]] json secrets_of_peer(std::size_t node) { return pop_.node(node).get("/peers")["peers"][0]["secrets"]; }

  Pop pop_;
  std::vector<std::unique_ptr<Worker>> workers_;
  bool blocked_ = false;
  Clock::time_point next_calm_{};
  std::size_t calm_turn_ = 0;
};

TEST_F(SecretRotation, loses_no_mitigation_no_lift_and_no_hit) {
  const json old_only = secrets_of(0);
  ASSERT_EQ(old_only.size(), 1U);
  drive_until([&] { return is_blocked_everywhere(); });

  // 1. The next one on every node.
  step(0, kOld, "hash_secret_next_file", kNew);
  EXPECT_EQ(secrets_of(0).size(), 2U);
  EXPECT_EQ(secrets_of_peer(1), secrets_of(0)) << "a peer hears of it at once";
  const AdminAnswer refused =
      ask_admin(pop_.node(1).admin_socket(), "POST", "/lift", json{{"rule", "all"}, {"values", {kBlocked}}}.dump());
  EXPECT_EQ(refused.status, 409) << "it knows one of the client's two keys only";
  EXPECT_NE(refused.body.find("give this order to node node-0"), std::string::npos) << refused.body;
  order(0, "/block", true);
  expect_mitigated_again();
  order(0, "/lift", false);
  step(1, kOld, "hash_secret_next_file", kNew);
  order(1, "/block", true);
  expect_mitigated_again();
  drive(kWindow + kMitigate);

  // 2. It becomes the first, and the old one is only looked up.
  step(0, kNew, "hash_secret_former_file", kOld);
  expect_mitigated_again();
  step(1, kNew, "hash_secret_former_file", kOld);
  EXPECT_EQ(secrets_of(1)[1]["counted"], false);
  expect_mitigated_again();
  order(1, "/lift", false);
  order(0, "/block", true);
  drive(kMitigate);

  // 3. The old one is forgotten.
  step(0, kNew);
  expect_mitigated_again();
  step(1, kNew);
  expect_mitigated_again();
  EXPECT_EQ(secrets_of(0).size(), 1U);
  EXPECT_NE(secrets_of(0), old_only);
  EXPECT_EQ(secrets_of_peer(0), secrets_of(1));
  order(1, "/lift", false);

  for (std::size_t i = 0; i < 2; ++i) {
    const auto statistics = workers_[i]->statistics();
    const std::uint64_t recorded = statistics.hits_recorded + statistics.hits_dropped;
    ASSERT_TRUE(eventually([&] { return account(pop_.node(i), "all").pending == 0; }));
    const Account hits = account(pop_.node(i), "all");
    EXPECT_EQ(hits.recorded, recorded);
    EXPECT_EQ(hits.delivered, recorded);
    EXPECT_TRUE(hits.adds_up());
  }
}

// An automatic mitigation that began under the old secret lasts to its end through the step that stops counting under
// it.
TEST_F(SecretRotation, a_mitigation_under_the_former_secret_lasts_to_its_end) {
  for (std::size_t i = 0; i < 2; ++i) step(i, kOld, "hash_secret_next_file", kNew);
  expect_mitigated_again();
  const auto decided = Clock::now();
  const auto remaining = [&] {
    std::int64_t most = 0;
    const json told = pop_.node(0).get("/explain?rule=all&value=" + std::string(kGreedy));
    for (const json& under : {told, told["second"]})
      if (!under["enforced"].is_null()) most = std::max(most, under["enforced"]["remaining_ms"].get<std::int64_t>());
    return milliseconds(most);
  };
  const auto end = Clock::now() + remaining();
  ASSERT_GT(end, decided);
  for (std::size_t i = 0; i < 2; ++i) {
    step(i, kNew, "hash_secret_former_file", kOld);
  }
  // Both steps took part of it; what is left of it must hold on both nodes.
  while (Clock::now() + milliseconds(50) < end) {
    ASSERT_TRUE(is_blocked_everywhere());
    drive_once();
  }
}

TEST_F(SecretRotation, a_step_left_out_is_told_and_a_stranger_is_not_let_in) {
  step(0, kOld, "hash_secret_next_file", kNew);
  // Node 1 has not taken the step; node 0 goes on to the next.
  const std::string text = [&] {
    std::ifstream in(pop_.node(0).config_file());
    std::string kept;
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("hash_secret", 0) != 0) kept += line + "\n";
    }
    return kept;
  }();
  pop_.node(0).configure("hash_secret_file: " + file(kNew) + "\nhash_secret_former_file: " + file(kOld) + "\n" + text);
  (void)pop_.node(0).post("/reload", json::object());
  ASSERT_TRUE(eventually([&] {
    return ask_admin(pop_.node(1).admin_socket(), "GET", "/ready").body.find("a step was left out") !=
           std::string::npos;
  }));
  pop_.node(0).configure("hash_secret_file: " + file(kNew) + "\n" + text);
  (void)pop_.node(0).post("/reload", json::object());
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(eventually([&] {
      const json peer = pop_.node(i).get("/peers")["peers"][0];
      return peer["last_error"].get<std::string>().find("another hash secret: found") != std::string::npos &&
             peer["heard"] == false;
    })) << "neither tells nor hears the other";
  }
}

}  // namespace
}  // namespace popgate::process
