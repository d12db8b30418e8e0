// SPDX-License-Identifier: Apache-2.0
//
// A shard is added to a running PoP by the steps of docs/operations.md, one daemon after the other, while a client
// comes closer to its limit: at no step does a node lose sight of what the others count.
#include <gtest/gtest.h>

#include <utility>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";
constexpr int kOldShards = 2;
constexpr int kNewShards = 3;
constexpr int kClients = 30;  // so many that some keys lie elsewhere in the new ring

std::string client(int i) { return "203.0.113." + std::to_string(i + 1); }

class PopResize : public ::testing::Test {
 protected:
  void SetUp() override {
    pop_ = std::make_unique<Pop>(
        PopOptions{.nodes = 2, .shards = kNewShards, .proxy = false, .rules = kRules, .start = false});
    for (std::size_t i = 0; i < 2; ++i) configure(i, kOldShards, 0);
    pop_->start();
    for (std::size_t i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<Worker>(pop_->node(i)));
      ASSERT_TRUE(workers_.back()->attach());
    }
  }
  /// The node counts in the ring of so many shards and also reads that of the others (0: none).
  void configure(std::size_t node, int counts_in, int also_reads) {
    std::string yaml = pop_->node(node).config();
    const std::size_t begin = yaml.find("counters:\n");
    const std::size_t end = yaml.find("mesh:\n");
    std::string counters = "counters:\n  shards: " + shards(counts_in) + "\n";
    if (also_reads > 0) counters += "  also_read: {shards: " + shards(also_reads) + "}\n";
    pop_->node(node).configure(yaml.replace(begin, end - begin, counters));
  }
  [[nodiscard]] std::string shards(int count) {
    std::string list = "[";
    for (int i = 0; i < count; ++i) {
      const std::string port = std::to_string(pop_->shard(static_cast<std::size_t>(i)).port());
      list += (i > 0 ? ", " : "") + ("{name: shard-" + std::to_string(i)) + ", address: \"127.0.0.1:" + port + "\"}";
    }
    return list + "]";
  }
  void restart_with(std::size_t node, int counts_in, int also_reads) {
    configure(node, counts_in, also_reads);
    ASSERT_EQ(pop_->node(node).stop(), 0);
    pop_->node(node).start();
    ASSERT_TRUE(workers_[node]->attach());
    ASSERT_TRUE(eventually([&] { return pop_->node(0).ready() && pop_->node(1).ready(); }));
  }
  /// Every client, on every node.
  void send(int hits) {
    for (const auto& worker : workers_) {
      for (int i = 0; i < kClients; ++i) {
        for (int hit = 0; hit < hits; ++hit, ++sent_) ASSERT_FALSE(worker->request(client(i))) << client(i);
      }
    }
    ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").pending == 0; }));
  }

  /// Neither node alone sees more than the limit: the second to count decides, and only if it reads what the first did.
  void expect_block_by_what_the_other_counted(std::size_t first, std::size_t second, int first_client) {
    for (const auto& [node, hits] : {std::pair(first, 10), std::pair(second, 11)}) {
      for (int i = first_client; i < first_client + kClients; ++i) {
        for (int hit = 0; hit < hits; ++hit, ++sent_) workers_[node]->request(client(i));
      }
      ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").pending == 0; }));
    }
    for (int i = first_client; i < first_client + kClients; ++i) {
      EXPECT_TRUE(eventually([&] { return workers_[0]->is_blocked(client(i)) && workers_[1]->is_blocked(client(i)); }))
          << client(i);
    }
  }

  std::unique_ptr<Pop> pop_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::uint64_t sent_ = 0;
};

TEST_F(PopResize, by_the_documented_steps_blocks_nobody_early_and_everybody_at_the_limit) {
  send(2);  // 4 of 20
  ASSERT_NO_FATAL_FAILURE(restart_with(0, kOldShards, kNewShards));
  ASSERT_NO_FATAL_FAILURE(restart_with(1, kOldShards, kNewShards));
  send(2);  // 8
  ASSERT_NO_FATAL_FAILURE(restart_with(0, kNewShards, kOldShards));
  send(3);  // 14: one node counts in the new ring, the other in the old
  expect_block_by_what_the_other_counted(0, 1, kClients);
  expect_block_by_what_the_other_counted(1, 0, 2 * kClients);
  ASSERT_NO_FATAL_FAILURE(restart_with(1, kNewShards, kOldShards));
  send(3);  // 20: the limit itself passes
  for (int i = 0; i < kClients; ++i) {
    EXPECT_FALSE(workers_[0]->is_blocked(client(i))) << client(i);
    workers_[static_cast<std::size_t>(i) % 2]->request(client(i));
    ++sent_;
  }
  for (int i = 0; i < kClients; ++i) {
    EXPECT_TRUE(eventually([&] { return workers_[0]->is_blocked(client(i)) && workers_[1]->is_blocked(client(i)); }))
        << client(i);
  }
  ASSERT_NO_FATAL_FAILURE(restart_with(0, kNewShards, 0));
  ASSERT_NO_FATAL_FAILURE(restart_with(1, kNewShards, 0));
  ASSERT_TRUE(eventually([&] { return total_account(*pop_, "all").pending == 0; }));
  const Account account = total_account(*pop_, "all");
  EXPECT_EQ(account.recorded, sent_);
  EXPECT_EQ(account.delivered, sent_);
  EXPECT_EQ(pop_->counters_sum(), sent_) << "each hit is counted in one ring";
}

}  // namespace
}  // namespace popgate::process
