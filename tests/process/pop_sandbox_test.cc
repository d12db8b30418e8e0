// SPDX-License-Identifier: Apache-2.0
//
// The system calls and address families that scripts/popgated.service allows, and those that a daemon really uses: from
// its start through workers, shards, peers under TLS, orders, reloads and a restart to its end. systemd would enforce
// the filters; here a daemon is watched by strace, and systemd-analyze says what is in a group of calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using ::testing::Contains;
using ::testing::Not;
using Names = std::set<std::string>;

constexpr char kRules[] =
    "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h, max_blocked_share: 90}\n";

bool runs(const std::vector<std::string>& argv) {
  try {
    return ChildProcess(argv).wait_exit(std::chrono::seconds(10)) == 0;
  } catch (const std::exception&) {
    return false;
  }
}

std::string output_of(const std::vector<std::string>& argv) {
  ChildProcess child(argv);
  return child.wait_exit(std::chrono::seconds(10)) == 0 ? child.output() : std::string();
}

/// The calls of a name or, with an @, of a group and the groups in it.
void add_calls(const std::string& name, Names& calls) {
  if (!name.starts_with("@")) {
    calls.insert(name);
    return;
  }
  std::istringstream lines(output_of({"systemd-analyze", "syscall-filter", name}));
  std::string line;
  std::getline(lines, line);  // the group itself
  while (std::getline(lines, line)) {
    std::string word;
    if (std::istringstream(line) >> word && !word.starts_with("#")) add_calls(word, calls);
  }
}

/// The words behind every `NAME=` of the unit, one string a line.
std::vector<std::string> settings(const std::string& name) {
  std::ifstream unit(POPGATE_SOURCE_DIR "/scripts/popgated.service");
  std::vector<std::string> found;
  for (std::string line; std::getline(unit, line);) {
    if (line.starts_with(name + "=")) found.push_back(line.substr(name.size() + 1));
  }
  return found;
}

/// What the unit's SystemCallFilter lines leave, taken one after the other.
Names allowed_calls() {
  Names allowed;
  for (std::string line : settings("SystemCallFilter")) {
    const bool takes_away = line.starts_with("~");
    Names named;
    std::istringstream words(line.substr(takes_away ? 1 : 0));
    for (std::string word; words >> word;) add_calls(word, named);
    if (takes_away) {
      std::erase_if(allowed, [&](const std::string& call) { return named.contains(call); });
    } else {
      allowed.merge(named);
    }
  }
  return allowed;
}

/// What strace wrote: PID CALL(ARGUMENTS) = RESULT.
struct Trace {
  Names calls;
  Names families;
  Names writable_code;  // lines
  bool ended = false;
};

Trace read_trace(const std::filesystem::path& path, pid_t daemon) {
  Trace trace;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string pid;
    std::string rest;
    words >> pid >> std::ws;
    std::getline(words, rest);
    if (rest.starts_with("+++ ") && pid == std::to_string(daemon)) trace.ended = true;
    const std::size_t end = rest.find('(');
    if (end == std::string::npos || rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") != end) continue;
    const std::string call = rest.substr(0, end);
    trace.calls.insert(call);
    if (call == "socket" || call == "socketpair") trace.families.insert(rest.substr(end + 1, rest.find(',') - end - 1));
    const bool is_code = rest.find("PROT_EXEC") != std::string::npos;
    const bool was_writable = call == "mprotect" || rest.find("PROT_WRITE") != std::string::npos;
    if (is_code && was_writable) trace.writable_code.insert(rest);
  }
  return trace;
}

class PopSandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runs({"systemd-analyze", "syscall-filter", "@default"})) GTEST_SKIP() << "systemd-analyze is not here";
    if (!runs({"strace", "-D", "-f", "-o", "/dev/null", "true"}))
      GTEST_SKIP() << "strace is not here, or may not trace";
  }
  void live_through_everything() {
    pop_.node(0).under() = {"strace", "-D", "-f", "-q", "-s", "0", "-o", trace_file().string()};
    pop_.start();
    Worker worker(pop_.node(0));
    ASSERT_TRUE(worker.attach());
    for (int i = 0; i < 30; ++i) (void)worker.request("192.0.2.1");
    ASSERT_TRUE(eventually([&] { return worker.is_blocked("192.0.2.1"); }));
    (void)pop_.node(1).post("/block", {{"rule", "all"}, {"values", {"192.0.2.2"}}, {"for_ms", 60'000}});
    ASSERT_TRUE(eventually([&] { return worker.is_blocked("192.0.2.2"); }));
    (void)pop_.node(0).post("/lift", {{"rule", "all"}, {"values", {"192.0.2.2"}}});
    (void)pop_.node(0).post("/enforce", {{"state", "off"}, {"pop", true}});
    (void)pop_.node(0).post("/enforce", {{"state", "on"}, {"pop", true}});
    (void)pop_.node(0).post("/ring-check", nlohmann::json::object());
    (void)pop_.node(0).post("/reload", nlohmann::json::object());
    pop_.node(0).process().signal(SIGHUP);
    (void)ask_admin(pop_.node(0).admin_socket(), "GET", "/metrics");
    pop_.shard(0).kill();
    pop_.node(1).kill();
    ASSERT_TRUE(eventually([&] { return !pop_.node(0).ready(); }));
    pop_.shard(0).start();
    pop_.node(1).start();
    ASSERT_TRUE(eventually([&] { return pop_.node(0).ready(); }));
    ASSERT_EQ(pop_.node(0).stop(), 0);
    first_ = finished_trace();
    pop_.node(0).start();  // adopts table, records and ledger
    ASSERT_TRUE(worker.attach());
    ASSERT_EQ(pop_.node(0).stop(), 0);
    second_ = finished_trace();
  }
  /// strace ends after the daemon.
  [[nodiscard]] Trace finished_trace() {
    Trace trace;
    EXPECT_TRUE(eventually([&] { return (trace = read_trace(trace_file(), pop_.node(0).process().pid())).ended; }));
    return trace;
  }
  [[nodiscard]] std::filesystem::path trace_file() const { return pop_.folder() / "trace"; }

  Pop pop_{{.nodes = 2, .shards = 1, .proxy = false, .rules = kRules, .tls = true, .start = false}};
  Trace first_;
  Trace second_;
};

TEST_F(PopSandbox, a_daemon_does_nothing_that_its_unit_forbids) {
  const Names allowed = allowed_calls();
  ASSERT_THAT(allowed, Contains("epoll_wait"));
  ASSERT_THAT(allowed, Not(Contains("mount")));
  ASSERT_THAT(allowed, Not(Contains("setrlimit"))) << "of ~@resources";
  Names families;
  for (const std::string& line : settings("RestrictAddressFamilies")) {
    std::istringstream words(line);
    for (std::string word; words >> word;) families.insert(word);
  }
  ASSERT_EQ(families.size(), 3U);
  live_through_everything();
  for (const Trace& trace : {first_, second_}) {
    EXPECT_GT(trace.calls.size(), 30U);
    EXPECT_THAT(trace.calls, Contains("accept4"));
    EXPECT_THAT(trace.families, ::testing::SizeIs(::testing::Ge(2U)));
    for (const std::string& call : trace.calls) EXPECT_THAT(allowed, Contains(call)) << "SystemCallFilter";
    for (const std::string& family : trace.families)
      EXPECT_THAT(families, Contains(family)) << "RestrictAddressFamilies";
    EXPECT_THAT(trace.writable_code, ::testing::IsEmpty()) << "MemoryDenyWriteExecute";
  }
}

}  // namespace
}  // namespace popgate::process
