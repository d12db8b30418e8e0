// SPDX-License-Identifier: Apache-2.0
//
// One daemon takes over from another under load: no blocked client passes and no hit is lost beyond what the ledger
// states; what a daemon of another version left behind is refused with a reason, kept aside, and begun afresh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"
#include "tests/process/test_scale.h"
#include "tests/process/traffic.h"

namespace popgate::process {
namespace {

using ::testing::HasSubstr;

constexpr char kRules[] =
    "  - {name: all, key: [client_ip], limit: 1000000000, window: 1h, mitigate: 1h}\n"
    "  - {name: login, match: {path: /login}, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";
constexpr char kByOperator[] = "203.0.113.1";

void block(const Node& node, const std::string& client) {
  (void)node.post("/block", {{"rule", "all"}, {"values", {client}}, {"for_ms", 3'600'000}});
}

bool settled(Pop& pop, const Traffic& traffic) {
  return eventually([&] {
    if (!traffic.attached()) return false;
    for (std::size_t i = 0; i < pop.nodes(); ++i) {
      if (!pop.node(i).ready()) return false;
    }
    return total_account(pop, "all").pending == 0;
  });
}

class PopUpgrade : public ::testing::TestWithParam<bool> {};

TEST_P(PopUpgrade, under_load_lets_no_blocked_client_pass_and_states_every_lost_hit) {
  const bool is_killed = GetParam();
  const int rounds = kFullScale ? 20 : 6;
  Pop pop({.nodes = 2, .shards = 2, .rules = kRules, .more = "flush_interval: 10ms\n"});
  block(pop.node(1), kByOperator);
  Worker judge(pop.node(1));
  ASSERT_TRUE(judge.attach());
  ASSERT_TRUE(eventually([&] { return judge.is_blocked(kByOperator); }));
  Traffic traffic(pop.node(0), {.must_be_blocked = {kByOperator}});
  traffic.resume();
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_TRUE(eventually([&, from = traffic.sent()] { return traffic.sent() > from + 300; }));
    if (is_killed) {
      pop.node(0).kill();
    } else {
      ASSERT_EQ(pop.node(0).stop(), 0) << pop.node(0).process().output();
    }
    pop.node(0).start();
    ASSERT_TRUE(eventually([&] { return traffic.attached(); }));
  }
  traffic.pause();
  ASSERT_TRUE(settled(pop, traffic));
  const Account now = total_account(pop, "all");
  EXPECT_EQ(now.recorded, traffic.sent());
  EXPECT_TRUE(now.adds_up());
  if (!is_killed) {
    EXPECT_EQ(now.lost, 0U) << "of a daemon that stops in good order";
  }
  const std::uint64_t counted = pop.counters_sum();
  EXPECT_GE(counted, now.delivered);
  EXPECT_LE(counted, now.delivered + now.uncertain + now.lost);
  EXPECT_GT(traffic.looks(), 0U);
  EXPECT_EQ(traffic.passed_through(), 0U) << "of " << traffic.looks() << " looks";
}

INSTANTIATE_TEST_SUITE_P(, PopUpgrade, ::testing::Bool(), [](const auto& each) {
  return each.param ? "from_a_killed_daemon" : "from_a_stopped_daemon";
});

TEST(PopTakeover, second_daemon_on_the_same_folders_is_refused_and_harms_nothing) {
  Pop pop({.nodes = 1, .shards = 0, .proxy = false, .rules = kRules});
  Traffic traffic(pop.node(0), {});
  traffic.resume();
  Node second("node-0", pop.folder());
  second.surroundings() = pop.node(0).surroundings();
  (void)second.starts();  // the first one answers in its place
  const auto status = second.process().wait_exit(std::chrono::seconds(10));
  ASSERT_TRUE(status.has_value()) << "two daemons on one table";
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(second.process().output(), HasSubstr("in use by another daemon"));
  traffic.pause();
  ASSERT_TRUE(settled(pop, traffic));
  EXPECT_EQ(total_account(pop, "all").delivered, traffic.sent());
}

// ---- Files of other versions ----

struct LeftFile {
  const char* name;
  const char* path;    // below run_dir
  bool keeps_block;    // without it, the block is known all the same
  bool is_kept_aside;  // a person may want it
};
constexpr LeftFile kLeftFiles[] = {{"table", "mitigations.table", true, true},
                                   {"ledger", "ledger", true, true},
                                   {"records", "state/mitigations.records", false, true},
                                   {"rules", "rules", true, false}};

struct Change {
  const char* name;
  void (*make)(std::string& bytes);
};
constexpr std::size_t kVersionOffset = 8;  // after the magic number, in each of them
constexpr Change kChanges[] = {
    {"of_a_newer_version", [](std::string& bytes) { bytes[kVersionOffset] = 99; }},
    {"of_version_0", [](std::string& bytes) { bytes[kVersionOffset] = 0; }},
    {"of_another_program", [](std::string& bytes) { bytes.replace(0, 8, "FOREIGN!"); }},
    {"cut_off", [](std::string& bytes) { bytes.resize(20); }},
    {"of_rubbish",
     [](std::string& bytes) {
       std::mt19937 random(5);
       for (char& byte : bytes) byte = static_cast<char>(random());
     }},
};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class PopForeignFile : public ::testing::TestWithParam<std::tuple<LeftFile, Change>> {};

TEST_P(PopForeignFile, is_refused_with_a_reason_and_the_daemon_starts_afresh) {
  const auto& [left, change] = GetParam();
  Pop pop({.nodes = 1, .shards = 0, .proxy = false, .rules = kRules, .more = "table_entries: 1024\n"});
  Node& node = pop.node(0);
  const std::filesystem::path path = pop.folder() / "node-0" / left.path;
  block(node, kByOperator);
  Traffic traffic(node, {.ring_slots = 1024});
  traffic.resume();
  ASSERT_TRUE(eventually([&] { return traffic.sent() > 100; }));
  traffic.pause();
  ASSERT_TRUE(settled(pop, traffic));
  ASSERT_EQ(node.stop(), 0);
  std::string bytes = contents(path);
  ASSERT_GT(bytes.size(), 20U);
  change.make(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;

  node.start();
  if (left.is_kept_aside) {
    EXPECT_THAT(node.process().output(), HasSubstr(path.string()));
    EXPECT_EQ(contents(path.string() + ".refused"), bytes) << "kept aside as it was";
  }
  ASSERT_TRUE(eventually([&] { return traffic.attached(); }));
  Worker worker(node);
  ASSERT_TRUE(worker.attach());
  EXPECT_EQ(worker.is_blocked(kByOperator), left.keeps_block);
  const Account fresh = total_account(pop, "all");
  traffic.resume();
  ASSERT_TRUE(eventually([&, from = traffic.sent()] { return traffic.sent() > from + 100; }));
  traffic.pause();
  ASSERT_TRUE(settled(pop, traffic));
  const Account now = total_account(pop, "all");
  EXPECT_TRUE(now.adds_up());
  EXPECT_GT(now.delivered, fresh.delivered);
  EXPECT_LE(now.recorded, traffic.sent()) << "no hit is counted twice";

  // What the new daemon leaves is good again.
  block(node, "203.0.113.2");
  node.kill();
  node.start();
  ASSERT_TRUE(worker.attach());
  EXPECT_TRUE(worker.is_blocked("203.0.113.2"));
}

INSTANTIATE_TEST_SUITE_P(, PopForeignFile,
                         ::testing::Combine(::testing::ValuesIn(kLeftFiles), ::testing::ValuesIn(kChanges)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
                         });

}  // namespace
}  // namespace popgate::process
