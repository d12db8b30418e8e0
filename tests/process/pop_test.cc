// SPDX-License-Identifier: Apache-2.0
//
// A whole PoP: real daemons, memcached and nutcracker; workers are handles of libpopgate in this process and in forked
// ones.
#include "tests/process/pop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/process/accounts.h"

namespace popgate::process {
namespace {

// Windows long enough that no test crosses an edge of time; a limit that only the tests that want to cross reach.
constexpr char kCountOnly[] = "  - {name: all, key: [client_ip], limit: 1000000, window: 1h, mitigate: 1m}\n";
constexpr char kLimit20[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";

std::string client_address(int i) { return "192.0.2." + std::to_string(i % 250 + 1); }

TEST(Pop, hits_through_three_nodes_add_up_exactly) {
  Pop pop({.rules = kCountOnly});
  std::uint64_t sent = 0;
  for (std::size_t n = 0; n < pop.nodes(); ++n) {
    Worker worker(pop.node(n));
    ASSERT_TRUE(worker.attach());
    for (int i = 0; i < 1000; ++i, ++sent) ASSERT_FALSE(worker.request(client_address(i)));
  }
  ASSERT_TRUE(eventually([&] { return total_account(pop, "all").pending == 0; }));
  const Account account = total_account(pop, "all");
  EXPECT_EQ(account.recorded, sent);
  EXPECT_EQ(account.delivered, sent);
  EXPECT_EQ(pop.counters_sum(), sent);
}

TEST(Pop, without_a_proxy_hits_add_up_exactly_too) {
  Pop pop({.proxy = false, .rules = kCountOnly});
  for (std::size_t n = 0; n < pop.nodes(); ++n) {
    Worker worker(pop.node(n));
    ASSERT_TRUE(worker.attach());
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(worker.request(client_address(i)));
  }
  ASSERT_TRUE(eventually([&] { return pop.counters_sum() == 3000; }));
  EXPECT_EQ(total_account(pop, "all").delivered, 3000U);
}

// 21 hits over three nodes are one over the limit of 20: no node alone sees more than 7.
TEST(Pop, crossing_that_no_node_sees_alone_blocks_on_every_node) {
  Pop pop({.rules = kLimit20});
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t n = 0; n < pop.nodes(); ++n) {
    workers.push_back(std::make_unique<Worker>(pop.node(n)));
    ASSERT_TRUE(workers.back()->attach());
  }
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(workers[static_cast<std::size_t>(i) % 3]->request("203.0.113.7"));
  ASSERT_TRUE(eventually([&] { return total_account(pop, "all").delivered == 20; }));
  for (const auto& worker : workers) EXPECT_FALSE(worker->is_blocked("203.0.113.7")) << "the limit itself passes";
  ASSERT_FALSE(workers[2]->request("203.0.113.7"));
  for (const auto& worker : workers) {
    EXPECT_TRUE(eventually([&] { return worker->is_blocked("203.0.113.7"); }));
    EXPECT_FALSE(worker->is_blocked("203.0.113.8"));
  }
}

TEST(Pop, blocked_requests_are_not_counted) {
  Pop pop({.nodes = 1, .rules = kLimit20});
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  for (int i = 0; i < 21; ++i) worker.request("203.0.113.7");
  ASSERT_TRUE(eventually([&] { return worker.is_blocked("203.0.113.7"); }));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(worker.request("203.0.113.7"));
  ASSERT_TRUE(eventually([&] { return total_account(pop, "all").pending == 0; }));
  EXPECT_EQ(total_account(pop, "all").recorded, 21U);
  EXPECT_EQ(worker.statistics().blocked, 100U);
}

TEST(Pop, two_workers_forked_from_one_parent_are_both_counted) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      Worker worker(pop.node(0));
      if (!worker.attach()) _exit(1);
      for (int i = 0; i < 500; ++i) worker.request(client_address(i));
      _exit(worker.statistics().hits_recorded == 500 ? 0 : 2);  // dies with hits in its ring: no goodbye
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(eventually([&] { return pop.counters_sum() == 1000; }));
  EXPECT_EQ(total_account(pop, "all").recorded, 1000U);
}

}  // namespace
}  // namespace popgate::process
