// SPDX-License-Identifier: Apache-2.0
//
// A PoP whose parts are killed and restarted while hits flow, with the account of every hit checked exactly.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <random>

#include "libclient/record/hit_ring_format.h"
#include "tests/process/accounts.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

constexpr char kCountOnly[] = "  - {name: all, key: [client_ip], limit: 1000000, window: 1h, mitigate: 1m}\n";
constexpr int kClients = 50;

std::string client_address(int i) { return "192.0.2." + std::to_string(i % kClients + 1); }

// Sends hits in small lots, with the worker's tick between them, as a proxy would.
class Flow {
 public:
  explicit Flow(Worker& worker) : worker_(worker) {}
  void send(int hits) {
    for (int i = 0; i < hits; ++i, ++sent_) {
      worker_.request(client_address(static_cast<int>(sent_)));
      if (sent_ % 20 == 0) worker_.tick();
    }
  }
  /// Sends on until the condition holds.
  [[nodiscard]] bool send_until(const std::function<bool()>& condition) {
    return eventually([&] {
      send(20);
      return condition();
    });
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  Worker& worker_;
  std::uint64_t sent_ = 0;
};

// Everything is accounted: nothing waits, and the columns add up to what was sent.
void expect_exact_account(Pop& pop, Worker& worker, std::uint64_t sent) {
  ASSERT_TRUE(eventually([&] {
    worker.tick();
    return total_account(pop, "all").pending == 0;
  })) << "pending: "
      << total_account(pop, "all").pending;
  const Account account = total_account(pop, "all");
  EXPECT_EQ(account.recorded, sent);
  EXPECT_TRUE(account.adds_up()) << account.delivered << " delivered, " << account.uncertain << " uncertain, "
                                 << account.dropped << " dropped, " << account.expired << " expired, " << account.lost
                                 << " lost";
}

// While no shard lost its counters, they hold what was delivered, and at most what may have been delivered besides.
void expect_counters_fit(Pop& pop) {
  const Account account = total_account(pop, "all");
  const std::uint64_t counted = pop.counters_sum();
  EXPECT_GE(counted, account.delivered);
  EXPECT_LE(counted, account.delivered + account.uncertain + account.lost);
}

TEST(PopFaults, daemon_killed_again_and_again_loses_only_what_its_ledger_states) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  Node& node = pop.node(0);
  Worker worker(node);
  ASSERT_TRUE(worker.attach());
  Flow flow(worker);
  for (int round = 0; round < 10; ++round) {
    flow.send(100 + 37 * round);
    node.kill();
    flow.send(200);  // wait in the ring for the next daemon
    node.start();
    ASSERT_TRUE(flow.send_until([&] { return worker.statistics().attached == 1; }));
  }
  expect_exact_account(pop, worker, flow.sent());
  expect_counters_fit(pop);
  EXPECT_EQ(worker.statistics().hits_dropped, 0U);
}

TEST(PopFaults, daemon_stopped_in_good_order_loses_nothing) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  Node& node = pop.node(0);
  Worker worker(node);
  ASSERT_TRUE(worker.attach());
  Flow flow(worker);
  for (int round = 0; round < 3; ++round) {
    flow.send(500);
    auto stopped = std::async(std::launch::async, [&] { return node.stop(); });
    while (stopped.wait_for(std::chrono::seconds(0)) != std::future_status::ready) flow.send(20);
    EXPECT_EQ(stopped.get(), 0);
    node.start();
    ASSERT_TRUE(flow.send_until([&] { return worker.statistics().attached == 1; }));
  }
  expect_exact_account(pop, worker, flow.sent());
  const Account account = total_account(pop, "all");
  EXPECT_EQ(account.lost, 0U);
  EXPECT_EQ(account.uncertain, 0U);
  EXPECT_EQ(account.dropped, worker.statistics().hits_dropped);  // by a ring that was full while nobody drained it
  EXPECT_EQ(account.delivered, flow.sent() - account.dropped);
  EXPECT_EQ(pop.counters_sum(), account.delivered);
}

TEST(PopFaults, memcached_killed_and_restarted_empty_leaves_an_exact_account) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  Flow flow(worker);
  for (std::size_t round = 0; round < 6; ++round) {
    flow.send(300);
    pop.shard(round % pop.shards()).kill();
    flow.send(300);
    pop.shard(round % pop.shards()).start();
    ASSERT_TRUE(flow.send_until([&] { return pop.node(0).ready(); }));
  }
  expect_exact_account(pop, worker, flow.sent());
  EXPECT_GT(total_account(pop, "all").delivered, 0U);
}

TEST(PopFaults, nutcracker_killed_and_restarted_counts_nothing_twice) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  Flow flow(worker);
  for (int round = 0; round < 6; ++round) {
    flow.send(300);
    pop.proxy().kill();
    flow.send(300);
    pop.proxy().start();
    ASSERT_TRUE(flow.send_until([&] { return pop.node(0).ready(); }));
  }
  expect_exact_account(pop, worker, flow.sent());
  expect_counters_fit(pop);
}

TEST(PopFaults, full_ring_passes_requests_and_counts_what_it_drops) {
  Pop pop({.nodes = 1, .shards = 0, .proxy = false, .rules = kCountOnly});
  Worker worker(pop.node(0), kRingSlotsMin);
  ASSERT_TRUE(worker.attach());
  pop.node(0).process().freeze();
  for (int i = 0; i < 3000; ++i) ASSERT_FALSE(worker.request(client_address(i)));
  pop.node(0).process().thaw();
  expect_exact_account(pop, worker, 3000);
  const popgate_statistics statistics = worker.statistics();
  EXPECT_EQ(statistics.hits_recorded + statistics.hits_dropped, 3000U);
  EXPECT_GE(statistics.hits_dropped,
            3000U - kRingSlotsMin - 1000U);  // the daemon may have drained some before it froze
  EXPECT_EQ(total_account(pop, "all").dropped, statistics.hits_dropped);
}

// The ring as this process has it open: the only memfd of its name.
void* map_own_ring(std::size_t& bytes) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.rfind("/memfd:popgate", 0) != 0) continue;
    const int fd = std::stoi(entry.path().filename().string());
    struct stat status {};
    if (fstat(fd, &status) != 0) continue;
    bytes = static_cast<std::size_t>(status.st_size);
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  return MAP_FAILED;
}

// Runs in a child: attaches, then writes rubbish over header, slots and counts of its own ring.
int scribble(const Node& node, unsigned seed) {
  Worker worker(node);
  if (!worker.attach()) return 1;
  std::size_t bytes = 0;
  void* ring = map_own_ring(bytes);
  if (ring == MAP_FAILED) return 2;
  std::mt19937_64 random(seed);
  const std::size_t scribbled = ring_dropped_offset(kRingSlotsDefault) + 64 * 1024;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t at = 0; at + 8 <= std::min(bytes, scribbled); at += 8) {
      const std::uint64_t rubbish = random();
      std::memcpy(static_cast<char*>(ring) + at, &rubbish, sizeof rubbish);
    }
    usleep(2000);  // the daemon polls every 1 to 2 ms; whether it looked in time is for the parent to see
  }
  return 0;
}

TEST(PopFaults, worker_that_writes_rubbish_into_its_ring_harms_nobody_else) {
  Pop pop({.nodes = 1, .shards = 0, .proxy = false, .rules = kCountOnly});
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(scribble(pop.node(0), seed));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  ASSERT_TRUE(pop.node(0).process().running());
  Worker worker(pop.node(0));
  ASSERT_TRUE(worker.attach());
  const Account before = total_account(pop, "all");
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(worker.request(client_address(i)));
  ASSERT_TRUE(eventually([&] { return total_account(pop, "all").delivered - before.delivered == 1000; }));
  EXPECT_TRUE(total_account(pop, "all").adds_up());
}

TEST(PopFaults, worker_killed_with_hits_in_its_ring_is_drained_once_more) {
  Pop pop({.nodes = 1, .rules = kCountOnly});
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Worker worker(pop.node(0));
    const char attached = worker.attach() ? 'y' : 'n';
    (void)!write(ready[1], &attached, 1);
    raise(SIGSTOP);  // until the parent has frozen the daemon
    for (int i = 0; i < 700; ++i) worker.request(client_address(i));
    raise(SIGKILL);
  }
  char attached = 0;
  ASSERT_EQ(read(ready[0], &attached, 1), 1);
  ASSERT_EQ(attached, 'y');
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  pop.node(0).process().freeze();
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  pop.node(0).process().thaw();
  EXPECT_TRUE(eventually([&] { return total_account(pop, "all").delivered == 700; }));
  EXPECT_EQ(pop.counters_sum(), 700U);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace popgate::process
