// SPDX-License-Identifier: Apache-2.0
//
// Real daemons, each in a network namespace of its own, on a network that loses, delays, duplicates, reorders and
// parts: nothing that was decided is lost, nothing that was lifted comes back, every hit is accounted for, and soon
// after the network is well again all nodes agree.
//
// scripts/test runs short stretches of bad weather; POPGATE_LOSS_SECONDS=60 runs the long one, POPGATE_SEED another
// course of events.
#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "tests/process/accounts.h"
#include "tests/process/agreement.h"
#include "tests/process/network.h"
#include "tests/process/pop.h"
#include "tests/process/test_scale.h"

namespace popgate::process {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";
constexpr milliseconds kHealsWithin{2000};

std::string client_number(int i) { return "203.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1); }

class PopNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = Network::unavailable()) GTEST_SKIP() << "no network namespaces with TUN here: " << *reason;
    RecordProperty("seed", std::to_string(seed_));
  }
  void TearDown() override {
    if (HasFailure()) std::cout << "POPGATE_SEED=" << seed_ << "\n";
  }
  void start(int nodes) {
    make(nodes);
    pop_->start();
    attach();
  }
  void make(int nodes) {
    network_ = std::make_unique<Network>(static_cast<std::size_t>(nodes) + 1, seed_);
    pop_ = std::make_unique<Pop>(PopOptions{.nodes = nodes,
                                            .shards = 1,
                                            .proxy = false,
                                            .rules = kRules,
                                            .more = "flush_interval: 20ms\n",
                                            .network = network_.get(),
                                            .start = false});
  }
  void attach() {
    for (std::size_t i = 0; i < pop_->nodes(); ++i) {
      workers_.push_back(std::make_unique<Worker>(pop_->node(i)));
      ASSERT_TRUE(workers_.back()->attach());
    }
  }
  [[nodiscard]] std::size_t any_node() { return random_() % pop_->nodes(); }

  // An operator's block of a client that nobody has seen.
  void block(std::size_t node, int client) {
    (void)pop_->node(node).post("/block",
                                {{"rule", "all"}, {"values", {client_number(client)}}, {"for_ms", 3'600'000}});
    blocked_.insert(client);
  }
  void lift(std::size_t node, int client) {
    (void)pop_->node(node).post("/lift", {{"rule", "all"}, {"values", {client_number(client)}}});
    blocked_.erase(client);
    lifted_.insert(client);
  }
  // A client goes over the limit on this node, which blocks it.
  void cross(std::size_t node, int client) {
    for (int i = 0; i <= 20; ++i, ++sent_) workers_[node]->request(client_number(client));
    ASSERT_TRUE(eventually([&] {
      workers_[node]->tick();
      return workers_[node]->is_blocked(client_number(client));
    })) << client_number(client)
        << " on " << pop_->node(node).name();
    blocked_.insert(client);
  }
  void expect_every_node_enforces_the_same() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->tick();
      for (const int client : blocked_) {
        EXPECT_TRUE(workers_[i]->is_blocked(client_number(client))) << client_number(client) << " on node " << i;
      }
      for (const int client : lifted_) {
        EXPECT_FALSE(workers_[i]->is_blocked(client_number(client))) << client_number(client) << " on node " << i;
      }
    }
  }
  void expect_exact_account() {
    ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").pending == 0; }));
    const Account account = total_account(*pop_, "all");
    EXPECT_EQ(account.recorded, sent_);
    EXPECT_TRUE(account.adds_up());
    const std::uint64_t counted = pop_->counters_sum();
    EXPECT_GE(counted, account.delivered);
    EXPECT_LE(counted, account.delivered + account.uncertain + account.lost);
  }
  // From the moment of healing: how long until all agree; then that they enforce it, and that every hit is accounted.
  void expect_healed(milliseconds within) {
    const milliseconds took = time_to_agree(*pop_, seconds(30));
    std::cout << "healed in " << took.count() << " ms, " << blocked_.size() << " blocked, " << lifted_.size()
              << " lifted; packets: " << network_->counts().carried << " carried, " << network_->counts().dropped
              << " dropped\n";
    ASSERT_GE(took.count(), 0) << disagreement(*pop_);
    EXPECT_LE(took, scaled(within));
    expect_every_node_enforces_the_same();
    expect_exact_account();
  }
  [[nodiscard]] std::size_t mesh_nodes() const { return pop_->nodes(); }
  void weather(const Network::Conditions& conditions) { network_->among(0, mesh_nodes(), conditions); }

  std::uint64_t seed_ = seed_from_environment(4711);
  std::mt19937_64 random_{seed_};
  std::unique_ptr<Network> network_;
  std::unique_ptr<Pop> pop_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::set<int> blocked_;
  std::set<int> lifted_;
  std::uint64_t sent_ = 0;
};

TEST_F(PopNetwork, parts_and_heals_without_losing_a_mitigation_or_undoing_a_lift) {
  start(4);
  block(0, 1);
  block(3, 2);
  cross(1, 3);
  ASSERT_GE(time_to_agree(*pop_, seconds(5)).count(), 0);
  for (const std::size_t one : {0U, 1U}) {
    for (const std::size_t other : {2U, 3U}) network_->between(one, other, {.cut = true});
  }
  // Each side sees that the other is gone, decides for itself, and lifts what the other goes on enforcing.
  ASSERT_TRUE(eventually([&] { return !pop_->node(0).ready() && !pop_->node(3).ready(); }));
  cross(0, 4);
  cross(2, 5);
  block(1, 6);
  block(3, 7);
  lift(3, 1);
  lift(0, 3);
  ASSERT_TRUE(eventually([&] { return workers_[1]->is_blocked(client_number(6)); }));
  EXPECT_FALSE(workers_[2]->is_blocked(client_number(6)));
  EXPECT_TRUE(workers_[1]->is_blocked(client_number(1))) << "the lift cannot have come through";
  weather({});
  expect_healed(kHealsWithin);
}

// While half of all packets are lost, every node decides and lifts.
TEST_F(PopNetwork, of_eight_nodes_heals_within_two_seconds_of_half_of_all_packets_lost) {
  constexpr milliseconds kBetweenOrders{100};
  const auto stretch = seconds(number_from_environment("POPGATE_LOSS_SECONDS", kFullScale ? 8 : 4));
  start(8);
  for (int client = 0; client < 20; ++client) block(any_node(), client);
  ASSERT_GE(time_to_agree(*pop_, seconds(5)).count(), 0);
  weather({.loss = 0.5, .duplicated = 0.05, .jitter = milliseconds(5)});
  int next_client = 20;
  int next_lift = 0;
  for (const auto until = Clock::now() + stretch; Clock::now() < until;) {
    const std::size_t node = any_node();
    switch (random_() % 4) {
      case 0:
        cross(node, next_client++);
        break;
      case 1:
        if (next_lift < 20) lift(node, next_lift++);
        break;
      default:
        block(node, next_client++);
    }
    for (const auto& worker : workers_) worker->tick();
    std::this_thread::sleep_for(kBetweenOrders);
  }
  weather({});
  expect_healed(kHealsWithin);
}

TEST_F(PopNetwork, with_200_ms_of_delay_stays_connected_and_enforces_after_that_delay) {
  constexpr milliseconds kDelay{200};
  start(3);
  weather({.delay = kDelay});
  ASSERT_TRUE(eventually([&] { return pop_->node(0).ready() && pop_->node(1).ready() && pop_->node(2).ready(); }));
  const auto settled = Clock::now() + seconds(4);
  const auto is_steady = [&] {
    for (std::size_t i = 0; i < pop_->nodes(); ++i) {
      if (!pop_->node(i).ready()) return false;
    }
    return true;
  };
  while (Clock::now() < settled) {
    EXPECT_TRUE(is_steady());
    std::this_thread::sleep_for(milliseconds(50));
  }
  const auto begin = Clock::now();
  block(0, 1);
  ASSERT_TRUE(eventually([&] { return workers_[2]->is_blocked(client_number(1)); }));
  const auto took = Clock::now() - begin;
  EXPECT_GE(took, kDelay);
  EXPECT_LE(took, kDelay + scaled(milliseconds(150)));
  const json peers = pop_->node(1).get("/peers");
  for (const json& peer : peers["peers"]) {
    EXPECT_NEAR(peer["round_trip_ms"].get<double>(), 400, 60);
    EXPECT_NEAR(peer["skew_ms"].get<double>(), 0, 20) << "the delay is the same both ways";
  }
  // Connecting, TLS and the hello take three round trips of 400 ms: longer than a short way is given.
  pop_->node(1).kill();
  pop_->node(1).start();
  ASSERT_TRUE(workers_[1]->attach());
  EXPECT_TRUE(eventually(is_steady));
  expect_healed(kHealsWithin);
}

TEST_F(PopNetwork, nodes_join_leave_and_return) {
  make(4);
  for (std::size_t i = 0; i < 3; ++i) pop_->node(i).start();  // the fourth has never been there
  for (std::size_t i = 0; i < 3; ++i) workers_.push_back(std::make_unique<Worker>(pop_->node(i)));
  for (const auto& worker : workers_) ASSERT_TRUE(worker->attach());
  block(0, 1);
  cross(1, 2);
  ASSERT_TRUE(eventually([&] { return workers_[2]->is_blocked(client_number(2)); }));
  pop_->node(3).start();
  workers_.push_back(std::make_unique<Worker>(pop_->node(3)));
  ASSERT_TRUE(workers_[3]->attach());
  expect_healed(kHealsWithin);

  EXPECT_EQ(pop_->node(0).stop(), 0);
  pop_->node(1).kill();
  lift(2, 1);
  block(3, 3);
  cross(2, 4);
  pop_->node(0).start();
  pop_->node(1).start();
  for (const auto& worker : workers_) ASSERT_TRUE(worker->attach());
  expect_healed(kHealsWithin);
}

// Also the way to memcached loses packets.
TEST_F(PopNetwork, with_loss_and_daemons_killed_at_once_loses_nothing) {
  const int rounds = kFullScale ? 12 : 4;
  start(4);
  network_->among(0, network_->hosts(), {.loss = 0.2, .jitter = milliseconds(2)});
  int client = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t victim = any_node();
    const std::size_t decider = (victim + 1 + random_() % (pop_->nodes() - 1)) % pop_->nodes();
    block(victim, client++);
    cross(decider, client++);
    pop_->node(victim).kill();
    if (round > 0) lift(decider, 2 * round - 2);
    pop_->node(victim).start();
    ASSERT_TRUE(workers_[victim]->attach());
  }
  network_->among(0, network_->hosts(), {});
  expect_healed(kHealsWithin);
}

}  // namespace
}  // namespace popgate::process
