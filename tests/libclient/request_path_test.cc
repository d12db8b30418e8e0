// SPDX-License-Identifier: Apache-2.0
//
// The promise of the request path: no system call, no allocation. Proven by a filter that kills the process at the
// first system call, and by counting what the allocator is asked for.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <popgate/popgate.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "libclient/check/table_reader.h"
#include "tests/libclient/allocation_count.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

// A sanitizer's run-time makes system calls of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr int kChecks = 100'000;

// From here on only exit_group is allowed; anything else kills the process with SIGSYS.
bool forbid_system_calls() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int find_header(void*, const char*, std::size_t, const char** value, std::size_t* value_bytes) {
  *value = "someone";
  *value_bytes = 7;
  return 1;
}

// Every kind of check there is: passes, blocks, logs, drops, a header, a key of the caller's, wrong arguments.
int run_checks(popgate_client* client, int checks) {
  int blocked = 0;
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.host = "WWW.Example.com:443";
  request.host_bytes = 19;
  request.path = "/a/b?c=d";
  request.path_bytes = 8;
  request.client.bytes = 4;
  request.header = find_header;
  for (int i = 0; i < checks; ++i) {
    request.client.octets[3] = static_cast<std::uint8_t>(i % 3);
    blocked += popgate_check(client, &request, &verdict) == POPGATE_BLOCK ? 1 : 0;
    if (i % 8 == 0) blocked += popgate_check_key(client, "all", 3, "key", 3, &verdict) == POPGATE_BLOCK ? 1 : 0;
    if (i % 8 == 1) blocked += popgate_peek(client, &request, nullptr) == POPGATE_BLOCK ? 1 : 0;
    if (i % 8 == 2) (void)popgate_check(client, nullptr, &verdict);
    if (i % 8 == 3) (void)popgate_client_address(client, "192.0.2.1", 9, "198.51.100.1", 12, &request.client);
    std::memset(request.client.octets, 0, sizeof request.client.octets);
  }
  return blocked;
}

class RequestPathTest : public testing::Test {
 protected:
  RequestPathTest() : path_(directory_.file("workers.sock")), ledger_(Ledger::in_memory()) {}

  void start_daemon() {
    daemon_ = std::make_unique<DaemonSide>(path_, *ledger_, table_);
    const Rule all = rule_for_all("all", *ledger_->number_for(1));
    Rule by_header = rule_for_all("by header", *ledger_->number_for(2));
    by_header.key.push_back({KeyPart::kHeader, "x-user", 32, 64});
    Rule logs = rule_for_all("logs", *ledger_->number_for(3));
    logs.action = Action::kLog;
    logs_ = logs.number;
    daemon_->use_rules({all, by_header, logs});
  }
  static popgate_client* open_client(const std::string& path) {
    popgate_options options = POPGATE_OPTIONS_INIT;
    options.ring_slots = kRingSlotsMin;  // it fills up: drops are part of the path
    popgate_client* client = nullptr;
    return popgate_open(path.c_str(), &options, &client) == POPGATE_OK ? client : nullptr;
  }
  // Blocks the first client under the first rule and the second under the one that logs.
  void mitigate(popgate_client* client) {
    ASSERT_TRUE(daemon_->pump_until([&] {
      (void)popgate_tick(client);
      (void)run_checks(client, 2);
      return daemon_->hits().size() >= 6;
    }));
    table_.put(daemon_->hits()[0].key, daemon_->hits()[0].rule, std::chrono::hours(1));
    for (const Hit& hit : daemon_->hits()) {
      if (hit.rule == logs_ && hit.key != daemon_->hits()[2].key) {
        return table_.put(hit.key, logs_, std::chrono::hours(1), kTableFlagLogOnly);
      }
    }
    FAIL() << "no hit of the second client under the rule that logs";
  }

  TemporaryDirectory directory_;
  std::string path_;
  std::unique_ptr<Ledger> ledger_;
  DaemonSide::Table table_;
  std::unique_ptr<DaemonSide> daemon_;
  RuleNumber logs_ = kNoRule;
};

// Runs the checks in a child under the filter. The child opens its own client, as every worker does.
void expect_no_system_call(const std::string& path, bool attached, const std::function<void()>& while_waiting) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    popgate_client* client = nullptr;
    popgate_options options = POPGATE_OPTIONS_INIT;
    options.ring_slots = kRingSlotsMin;
    if (popgate_open(path.c_str(), &options, &client) != POPGATE_OK) _exit(2);
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    while (attached && statistics.attached == 0) {
      (void)popgate_tick(client);
      (void)popgate_get_statistics(client, &statistics);
      usleep(1000);
    }
    if (!forbid_system_calls()) _exit(3);
    const int blocked = run_checks(client, kChecks);
    _exit((blocked > 0) == attached ? 0 : 4);
  }
  int status = 0;
  pid_t ended = 0;
  const HostInstant deadline = HostClock::now() + std::chrono::seconds(60);
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && HostClock::now() < deadline) {
    while_waiting();
    usleep(500);
  }
  if (ended == 0) kill(child, SIGKILL);
  ASSERT_EQ(ended, child);
  ASSERT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status) << ": a system call was made";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RequestPathTest, checks_make_no_system_call_without_a_daemon) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's run-time makes system calls of its own";
  expect_no_system_call(path_, false, [] {});
}

TEST_F(RequestPathTest, checks_make_no_system_call_with_one) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's run-time makes system calls of its own";
  start_daemon();
  popgate_client* const client = open_client(path_);
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(daemon_->pump_until([&] {
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    (void)popgate_tick(client);
    return popgate_get_statistics(client, &statistics) == POPGATE_OK && statistics.attached == 1;
  }));
  mitigate(client);
  expect_no_system_call(path_, true, [&] { daemon_->pump(); });
  popgate_close(client);
}

// That the filter is one: the same child is killed when it does make a call.
TEST_F(RequestPathTest, the_filter_kills_at_a_system_call) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's run-time makes system calls of its own";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!forbid_system_calls()) _exit(3);
    (void)getppid();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST_F(RequestPathTest, checks_allocate_nothing) {
  start_daemon();
  popgate_client* const client = open_client(path_);
  ASSERT_NE(client, nullptr);
  const auto allocate = [] {
    void* volatile memory = malloc(16);  // volatile: a pair that nobody looks at is optimised away
    free(memory);
  };
  EXPECT_EQ(allocations_during(allocate), 1U) << "the count counts nothing";
  EXPECT_EQ(allocations_during([&] { (void)run_checks(client, 1000); }), 0U) << "detached";
  ASSERT_TRUE(daemon_->pump_until([&] {
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    (void)popgate_tick(client);
    return popgate_get_statistics(client, &statistics) == POPGATE_OK && statistics.attached == 1;
  }));
  mitigate(client);
  int blocked = 0;
  EXPECT_EQ(allocations_during([&] { blocked = run_checks(client, kChecks); }), 0U) << "attached";
  EXPECT_GT(blocked, 0);
  popgate_close(client);
}

// Attaching and taking over rules happens in the tick: it maps memory, but does not allocate either.
TEST_F(RequestPathTest, ticks_allocate_nothing) {
  start_daemon();
  popgate_client* const client = open_client(path_);
  ASSERT_NE(client, nullptr);
  std::uint64_t allocations = 0;
  ASSERT_TRUE(daemon_->pump_until([&] {
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    allocations += allocations_during([&] { (void)popgate_tick(client); });
    return popgate_get_statistics(client, &statistics) == POPGATE_OK && statistics.attached == 1;
  }));
  EXPECT_EQ(allocations, 0U);
  popgate_close(client);
}

}  // namespace
}  // namespace popgate
