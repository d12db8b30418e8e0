// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/process/memcached.h"
#include "tests/process/nutcracker.h"
#include "tests/process/text_client.h"

namespace popgate::process {
namespace {

/// Gone, or dead and not yet reaped by whoever adopted it.
bool has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  return text.compare(text.rfind(')') + 2, 1, "Z") == 0;
}

TEST(ProcessFixtures, what_a_child_prints_and_how_it_ends_is_seen) {
  ChildProcess child({"sh", "-c", "echo out; echo \"$NAME\" >&2; exit 3"}, {.environment = {"NAME=err"}});
  const auto status = child.wait_exit(std::chrono::seconds(10));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
  EXPECT_EQ(child.output(), "out\nerr\n");
}

TEST(ProcessFixtures, a_child_is_gone_when_its_object_is) {
  pid_t pid = 0;
  {
    ChildProcess child({"sleep", "1000"});
    pid = child.pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// A test that is killed runs no destructor.
TEST(ProcessFixtures, servers_die_with_a_test_that_is_killed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t test = fork();
  if (test == 0) {
    Memcached memcached;
    Nutcracker nutcracker({{"shard-a", memcached.port(), 1}});
    const pid_t pids[2] = {memcached.process().pid(), nutcracker.process().pid()};
    if (write(ends[1], pids, sizeof pids) == sizeof pids) pause();
    _exit(1);
  }
  pid_t pids[2] = {-1, -1};
  const bool told = read(ends[0], pids, sizeof pids) == sizeof pids;
  kill(test, SIGKILL);
  waitpid(test, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  ASSERT_TRUE(told);
  for (const pid_t pid : pids) {
    EXPECT_TRUE(eventually([pid] { return has_ended(pid); })) << pid;
  }
}

TEST(ProcessFixtures, two_free_ports_differ) {
  const FreePort one;
  const FreePort other;
  EXPECT_NE(one.number(), other.number());
}

TEST(ProcessFixtures, nutcracker_passes_commands_on_to_memcached) {
  Memcached memcached;
  Nutcracker nutcracker({{"shard-a", memcached.port(), 1}});
  TextClient client(nutcracker.port());
  EXPECT_EQ(client.ask("add k 0 0 1\r\n7\r\n", "\r\n"), "STORED\r\n");
  EXPECT_EQ(memcached.number("k"), 7u);
  EXPECT_FALSE(memcached.value("other"));
}

TEST(ProcessFixtures, a_frozen_memcached_answers_after_it_is_thawed) {
  Memcached memcached;
  memcached.freeze();
  TextClient client(memcached.port());
  client.send("version\r\n");
  memcached.thaw();
  EXPECT_TRUE(client.read_through("\r\n").starts_with("VERSION "));
}

TEST(ProcessFixtures, memcached_restarts_empty_on_its_port) {
  Memcached memcached;
  EXPECT_EQ(TextClient(memcached.port()).ask("set k 0 0 1\r\n7\r\n", "\r\n"), "STORED\r\n");
  memcached.restart();
  EXPECT_FALSE(memcached.value("k"));
}

}  // namespace
}  // namespace popgate::process
