// SPDX-License-Identifier: Apache-2.0
//
// Each part of a PoP killed with SIGKILL again and again, at random instants while requests flow, and started again.
// After each kill the traffic pauses and the account of every hit is compared with what was sent: exactly.
//
// The release runs 200 kills of each part, other builds fewer. POPGATE_KILLS sets another number, POPGATE_SEED another
// seed; a failure prints both.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "libclient/record/hit_ring_format.h"
#include "tests/process/accounts.h"
#include "tests/process/pop.h"
#include "tests/process/test_scale.h"
#include "tests/process/traffic.h"

namespace popgate::process {
namespace {

using std::chrono::microseconds;

constexpr char kCountOnly[] = "  - {name: all, key: [client_ip], limit: 1000000000, window: 1h, mitigate: 1m}\n";
constexpr char kQuickFlush[] = "flush_interval: 5ms\n";
constexpr char kBlocked[] = "203.0.113.7";

class PopKills : public ::testing::Test {
 protected:
  void start(PopOptions options) {
    options.nodes = 1;
    options.shards = 1;
    options.rules = kCountOnly;
    options.more = kQuickFlush;
    pop_ = std::make_unique<Pop>(std::move(options));
  }
  void start_traffic(TrafficPlan plan = {}) { traffic_ = std::make_unique<Traffic>(node(), std::move(plan)); }
  [[nodiscard]] Node& node() { return pop_->node(0); }

  /// Kills so many, and goes on while all have come at harmless instants only.
  [[nodiscard]] static bool goes_on(int kill, int kills_min, bool seen_harm) {
    constexpr int kLongestFactor = 10;
    return kill <= kills_min || (!seen_harm && kill <= kills_min * kLongestFactor);
  }
  void run_for_random(microseconds longest) {
    usleep(static_cast<useconds_t>(random_() % static_cast<std::uint64_t>(longest.count())));
  }
  /// No request is sent any more, every part is there again, and nothing is pending: what happened to each hit is
  /// known.
  [[nodiscard]] bool settle() {
    traffic_->pause();
    return eventually(
        [&] { return traffic_->attached() && node().ready() && (now_ = account(node(), "all")).pending == 0; });
  }
  void expect_exact() {
    ASSERT_EQ(now_.recorded, traffic_->sent());
    ASSERT_TRUE(now_.adds_up());
    ASSERT_EQ(now_.dropped, traffic_->dropped());
  }

  std::unique_ptr<Pop> pop_;
  std::unique_ptr<Traffic> traffic_;
  std::uint64_t seed_ = seed_from_environment(20231);
  std::mt19937_64 random_{seed_};
  Account now_;
};

TEST_F(PopKills, of_the_daemon_lose_only_what_the_ledger_states_and_let_no_blocked_client_pass) {
  start({});
  (void)node().post("/block", {{"rule", "all"}, {"values", {kBlocked}}, {"for_ms", 3'600'000}});
  start_traffic({.must_be_blocked = {kBlocked}});
  for (int kill = 1; goes_on(kill, kills(), now_.lost > 0); ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill) + ", seed " + std::to_string(seed_));
    const Account before = now_;
    const std::uint64_t sent_before = traffic_->sent();
    traffic_->resume();
    run_for_random(microseconds(15'000));
    node().kill();
    const std::uint64_t sent_until_kill = traffic_->sent() - sent_before;
    node().start();
    ASSERT_TRUE(settle());
    ASSERT_NO_FATAL_FAILURE(expect_exact());
    ASSERT_EQ(now_.expired + now_.uncertain + now_.dropped, 0U);
    ASSERT_LE(now_.lost - before.lost, sent_until_kill) << "what waits in the ring is not lost with a daemon";
    const std::uint64_t counted = pop_->counters_sum();
    ASSERT_GE(counted, now_.delivered);
    ASSERT_LE(counted, now_.delivered + now_.lost) << "a hit was counted twice";
  }
  EXPECT_GT(now_.lost, 0U) << "the kills came at harmless instants only";
  EXPECT_EQ(traffic_->passed_through(), 0U) << "of " << traffic_->looks() << " looks at a blocked client";
}

TEST_F(PopKills, of_nutcracker_leave_an_exact_account_and_count_no_hit_twice) {
  start({});
  start_traffic();
  for (int kill = 1; goes_on(kill, kills(), now_.uncertain > 0); ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill) + ", seed " + std::to_string(seed_));
    traffic_->resume();
    run_for_random(microseconds(15'000));
    pop_->proxy().restart();
    ASSERT_TRUE(settle());
    ASSERT_NO_FATAL_FAILURE(expect_exact());
    ASSERT_EQ(now_.lost + now_.expired + now_.dropped, 0U);
    const std::uint64_t counted = pop_->counters_sum();
    ASSERT_GE(counted, now_.delivered);
    ASSERT_LE(counted, now_.delivered + now_.uncertain) << "a hit was counted twice";
  }
  EXPECT_GT(now_.uncertain, 0U) << "the kills came at harmless instants only";
}

// What a shard holds it was given since it was last started.
class PopKillsOfMemcached : public PopKills, public ::testing::WithParamInterface<bool> {};

TEST_P(PopKillsOfMemcached, leave_an_exact_account_and_count_no_hit_twice) {
  start({.proxy = GetParam()});
  start_traffic();
  ASSERT_TRUE(settle());
  for (int kill = 1; goes_on(kill, kills() / 2, now_.uncertain > 0); ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill) + ", seed " + std::to_string(seed_));
    const Account before = now_;
    traffic_->resume();
    run_for_random(microseconds(15'000));
    pop_->shard(0).restart();
    // Once it is known that the shard is back, whatever was under way to the killed one has ended.
    ASSERT_TRUE(settle());
    ASSERT_NO_FATAL_FAILURE(expect_exact());
    ASSERT_EQ(now_.lost + now_.expired + now_.dropped, 0U);
    const std::uint64_t counted = pop_->counters_sum();
    ASSERT_LE(counted, now_.delivered - before.delivered + now_.uncertain - before.uncertain)
        << "a hit was counted twice";

    const Account back = now_;
    traffic_->resume();
    run_for_random(microseconds(5'000));
    ASSERT_TRUE(settle());
    ASSERT_NO_FATAL_FAILURE(expect_exact());
    ASSERT_EQ(pop_->counters_sum() - counted, now_.delivered - back.delivered) << "a shard that is back counts exactly";
  }
  EXPECT_GT(now_.uncertain, 0U) << "the kills came at harmless instants only";
}

INSTANTIATE_TEST_SUITE_P(, PopKillsOfMemcached, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "through_nutcracker" : "without_a_proxy"; });

// What a worker that is about to be killed tells its test.
struct WorkerTale {
  std::atomic<int> ring_descriptor{-1};
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> done{0};
};

class SharedTale {
 public:
  SharedTale() : memory_(mmap(nullptr, sizeof(WorkerTale), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap failed");
    tale_ = new (memory_) WorkerTale;
  }
  ~SharedTale() { munmap(memory_, sizeof(WorkerTale)); }
  SharedTale(const SharedTale&) = delete;
  SharedTale& operator=(const SharedTale&) = delete;
  WorkerTale* operator->() { return tale_; }

 private:
  void* memory_;
  WorkerTale* tale_;
};

int own_ring() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.rfind("/memfd:popgate-ring", 0) == 0) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

[[noreturn]] void be_worker(const Node& node, SharedTale& tale, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  Worker worker(node, kRingSlotsMin);
  if (!worker.attach()) _exit(1);
  tale->ring_descriptor = own_ring();
  for (int i = 0;; ++i) {
    ++tale->begun;
    worker.request(traffic_client(i % 8));
    ++tale->done;
    if (i % 16 == 15) usleep(500);
  }
}

// The ring of a worker that runs, kept by the test beyond its end.
class KeptRing {
 public:
  KeptRing(pid_t worker, int descriptor) {
    const std::string path = "/proc/" + std::to_string(worker) + "/fd/" + std::to_string(descriptor);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = mmap(nullptr, kRingHeaderBytes, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (memory_ == MAP_FAILED) throw std::runtime_error(path + ": cannot map the ring");
  }
  ~KeptRing() { munmap(memory_, kRingHeaderBytes); }
  KeptRing(const KeptRing&) = delete;
  KeptRing& operator=(const KeptRing&) = delete;
  [[nodiscard]] std::uint64_t recorded() const { return static_cast<const RingHeader*>(memory_)->head; }
  [[nodiscard]] std::uint64_t dropped() const { return static_cast<const RingHeader*>(memory_)->dropped_total; }

 private:
  void* memory_;
};

TEST_F(PopKills, of_workers_lose_no_hit_that_they_recorded) {
  start({});
  std::uint64_t expected = 0;
  for (int kill = 1; kill <= kills(); ++kill) {
    SCOPED_TRACE("kill " + std::to_string(kill) + ", seed " + std::to_string(seed_));
    SharedTale tale;
    const pid_t parent = getpid();
    const pid_t worker = fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) be_worker(node(), tale, parent);
    ASSERT_TRUE(eventually([&] { return tale->ring_descriptor >= 0 && tale->done > 0; }));
    const KeptRing ring(worker, tale->ring_descriptor);
    run_for_random(microseconds(10'000));
    ASSERT_EQ(::kill(worker, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(worker, &status, 0), worker);
    ASSERT_TRUE(WIFSIGNALED(status));

    const std::uint64_t made = ring.recorded() + ring.dropped();
    ASSERT_LE(tale->done, made);
    ASSERT_GE(tale->begun, made);
    expected += made;
    ASSERT_TRUE(eventually([&] {
      now_ = account(node(), "all");
      return now_.recorded == expected && now_.pending == 0 && node().get("/status")["workers"].empty();
    })) << now_.recorded
        << " recorded of " << expected << ", " << now_.pending << " pending";
    ASSERT_EQ(now_.delivered + now_.dropped, expected);
    ASSERT_EQ(pop_->counters_sum(), now_.delivered);
  }
}

}  // namespace
}  // namespace popgate::process
