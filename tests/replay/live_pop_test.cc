// SPDX-License-Identifier: Apache-2.0
//
// popgate-replay --live against real daemons: what it measures, and that it leaves nothing running however it ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/process/pop.h"

namespace popgate {
namespace {

using process::ChildProcess;
using process::eventually;
using process::Pop;

constexpr char kHundredIn5s[] = "  - {name: flood, key: [client_ip], limit: 100, window: 5s, mitigate: 1m}\n";

std::vector<std::string> live(Pop& pop, std::vector<std::string> more) {
  std::vector<std::string> argv = {POPGATE_REPLAY, "--live",   "--json",
                                   "--quiet",      "--config", pop.node(0).config_file().string()};
  for (std::size_t i = 0; i < pop.nodes(); ++i) {
    argv.push_back("--worker-socket");
    argv.push_back(pop.node(i).worker_socket().string());
  }
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

// Its forked workers, as the kernel lists them.
std::vector<pid_t> children_of(const ChildProcess& parent) {
  const std::string pid = std::to_string(parent.pid());
  std::ifstream list("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

bool is_gone(pid_t pid) { return ::kill(pid, 0) == -1 && errno == ESRCH; }

// A run that would take a minute, once its workers send.
struct LongRun {
  explicit LongRun(Pop& pop) : program(live(pop, {"--synthetic", "60s"})) {
    EXPECT_TRUE(eventually([&] { return (workers = children_of(program)).size() == pop.nodes(); }));
    EXPECT_TRUE(eventually([&] { return hits_at(pop) > 0; })) << program.output();
  }
  static std::uint64_t hits_at(Pop& pop) { return pop.shards() == 0 ? 0 : pop.counters_sum(); }
  ChildProcess program;
  std::vector<pid_t> workers;
};

int exit_status(ChildProcess& program) {
  const auto status = program.wait_exit(std::chrono::seconds(20));
  EXPECT_TRUE(status.has_value()) << "it did not end";
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

// The truth of the traffic (replay/traffic.h), twice as fast: a flood of 300/s, pulses of 120/s and a swarm of 160/s
// from one /64 go over 100 in 5 s; offices (6/s), crawlers (4/s) and visitors do not.
TEST(LiveReplay, those_who_do_wrong_are_blocked_on_every_node_and_nobody_else) {
  Pop pop({.rules = kHundredIn5s});
  ChildProcess program(live(pop, {"--synthetic", "10s", "--speed-up", "2"}));
  ASSERT_EQ(exit_status(program), 0) << program.output();
  const nlohmann::json report = nlohmann::json::parse(program.output());
  EXPECT_EQ(report["mode"], "live");
  EXPECT_EQ(report["live"]["not_sent"], 0);
  EXPECT_EQ(report["live"]["checks_detached"], 0);
  EXPECT_EQ(report["live"]["hits_dropped"], 0);
  EXPECT_EQ(report["live"]["hits_recorded"], report["hits"]) << "libclient and the oracle count the same";
  const nlohmann::json& rule = report["rules"][0];
  EXPECT_EQ(rule["clients_mitigated"], 3);
  EXPECT_EQ(rule["false_mitigations"], 0);
  EXPECT_EQ(report["wrongly_blocked"], 0);
  EXPECT_EQ(rule["missed_crossings"], 0);
  EXPECT_EQ(report["time_to_enforced_s"]["count"], 3);
  EXPECT_EQ(report["crossings_not_enforced_everywhere"], 0);
  EXPECT_GE(report["clients_blocked"], 2 + 40) << "flood, pulses, and most of the swarm's 64 addresses";
  EXPECT_LE(report["clients_blocked"], 2 + 64);
}

TEST(LiveReplay, interrupt_ends_the_workers_and_prints_what_there_is) {
  Pop pop({.nodes = 2, .shards = 1, .proxy = false, .rules = kHundredIn5s});
  LongRun run(pop);
  run.program.signal(SIGINT);
  EXPECT_EQ(exit_status(run.program), 130);
  for (const pid_t worker : run.workers) EXPECT_TRUE(is_gone(worker));
  const nlohmann::json report = nlohmann::json::parse(run.program.output());
  EXPECT_EQ(report["live"]["interrupted"], true);
  EXPECT_GT(report["live"]["not_sent"], 0);
  EXPECT_GT(report["requests"], 0);
}

TEST(LiveReplay, worker_that_dies_ends_the_run_with_an_error_and_takes_the_others_along) {
  Pop pop({.nodes = 2, .shards = 1, .proxy = false, .rules = kHundredIn5s});
  LongRun run(pop);
  ASSERT_EQ(run.workers.size(), 2u);
  ::kill(run.workers[1], SIGKILL);
  EXPECT_EQ(exit_status(run.program), 3);
  EXPECT_NE(run.program.output().find("died"), std::string::npos) << run.program.output();
  for (const pid_t worker : run.workers) EXPECT_TRUE(is_gone(worker));
}

TEST(LiveReplay, workers_do_not_outlive_a_killed_program) {
  Pop pop({.nodes = 2, .shards = 1, .proxy = false, .rules = kHundredIn5s});
  LongRun run(pop);
  run.program.kill_now();
  for (const pid_t worker : run.workers) EXPECT_TRUE(eventually([&] { return is_gone(worker); }));
}

}  // namespace
}  // namespace popgate
