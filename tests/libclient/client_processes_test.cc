// SPDX-License-Identifier: Apache-2.0
//
// The library in forked and killed workers, beside a tick thread, and against a daemon that talks rubbish.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <popgate/popgate.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "libclient/attach_message.h"
#include "tests/libclient/client_case.h"

namespace popgate {
namespace {

using std::chrono::seconds;

TEST_F(ClientTest, in_the_child_of_a_fork_checks_pass_and_touch_nothing_of_the_parents) {
  start_daemon({rule_for_all("all", numbers_[0])});
  ClientOwner client = open_client(socket_path_);
  ASSERT_TRUE(attach(client));
  const popgate_request request = request_from("192.0.2.1");
  table_.put(key_of(client, request), numbers_[0], seconds(60));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool fine = popgate_check(client.get(), &request, nullptr) == POPGATE_PASS;
    popgate_tick(client.get());
    fine = fine && popgate_check(client.get(), &request, nullptr) == POPGATE_PASS;
    fine = fine && popgate_file_descriptor(client.get()) == -1;
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    fine = fine && popgate_get_statistics(client.get(), &statistics) == POPGATE_OK && statistics.checks_invalid == 2 &&
           statistics.attached == 0;
    popgate_close(client.release());
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // The parent is as attached as before, and its ring has no hit of the child's.
  popgate_tick(client.get());
  EXPECT_EQ(statistics_of(client).attached, 1U);
  EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_BLOCK);
  const popgate_request other = request_from("192.0.2.2");
  EXPECT_EQ(popgate_check(client.get(), &other, nullptr), POPGATE_PASS);
  ASSERT_TRUE(hits_arrive(2));
  for (int i = 0; i < 20; ++i) daemon_->pump();
  EXPECT_EQ(daemon_->hits().size(), 2U);
  EXPECT_EQ(daemon_->workers().status().size(), 1U);
}

TEST_F(ClientTest, two_workers_forked_from_one_parent_each_open_their_own_and_add_up) {
  start_daemon({rule_for_all("all", numbers_[0])});
  constexpr int kHits = 20'000;
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    popgate_client* client = nullptr;
    if (popgate_open(socket_path_.c_str(), nullptr, &client) != POPGATE_OK) _exit(1);
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    while (popgate_get_statistics(client, &statistics) == POPGATE_OK && statistics.attached == 0) {
      popgate_tick(client);
      usleep(1000);
    }
    const popgate_request request = request_from(i == 0 ? "192.0.2.1" : "192.0.2.2");
    for (int hit = 0; hit < kHits; ++hit) (void)popgate_check(client, &request, nullptr);
    (void)popgate_get_statistics(client, &statistics);
    popgate_close(client);
    _exit(statistics.hits_recorded == kHits ? 0 : 1);
  }
  EXPECT_TRUE(daemon_->pump_until([&] { return ledger_->row(numbers_[0])[LedgerColumn::kDrained] == 2 * kHits; }));
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  std::map<Key, int> by_key;
  for (const Hit& hit : daemon_->hits()) ++by_key[hit.key];
  ASSERT_EQ(by_key.size(), 2U);
  for (const auto& [key, hits] : by_key) EXPECT_EQ(hits, kHits);
}

TEST_F(ClientTest, a_worker_that_is_killed_leaves_its_hits_to_the_daemon) {
  start_daemon({rule_for_all("all", numbers_[0])});
  int to_parent[2];
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    popgate_client* client = nullptr;
    if (popgate_open(socket_path_.c_str(), nullptr, &client) != POPGATE_OK) _exit(1);
    popgate_statistics statistics = POPGATE_STATISTICS_INIT;
    while (popgate_get_statistics(client, &statistics) == POPGATE_OK && statistics.attached == 0) {
      popgate_tick(client);
      usleep(1000);
    }
    const popgate_request request = request_from("192.0.2.1");
    for (int hit = 0; hit < 50'000; ++hit) (void)popgate_check(client, &request, nullptr);
    (void)!write(to_parent[1], "x", 1);
    pause();
    _exit(0);
  }
  ASSERT_TRUE(daemon_->pump_until([&] { return daemon_->workers().status().size() == 1; }));
  char done = 0;
  ASSERT_EQ(read(to_parent[0], &done, 1), 1);  // meanwhile nothing is drained
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ::close(to_parent[0]);
  ::close(to_parent[1]);
  EXPECT_TRUE(daemon_->pump_until([&] { return daemon_->workers().status().empty(); }));
  EXPECT_EQ(ledger_->row(numbers_[0])[LedgerColumn::kDrained], 50'000U);
}

// What checks see while a tick thread replaces rules and table under them. Under ThreadSanitizer this is the proof of
// snapshots.h's argument.
TEST_F(ClientTest, a_tick_thread_replaces_rules_while_checks_go_on) {
  start_daemon({rule_for_all("all", numbers_[0])});
  popgate_options options = POPGATE_OPTIONS_INIT;
  options.tick_thread = 1;
  const ClientOwner client = open_client(socket_path_, &options);
  ASSERT_TRUE(daemon_->pump_until([&] { return statistics_of(client).attached == 1; }));
  const popgate_request request = request_from("192.0.2.1");
  table_.put(key_of(client, request), numbers_[0], seconds(60));
  for (std::uint64_t limit = 1000; limit < 1005; ++limit) {
    Rule changed = rule_for_all("all", numbers_[0]);
    changed.limit = limit;
    daemon_->use_rules({changed});
    popgate_verdict verdict = POPGATE_VERDICT_INIT;
    EXPECT_TRUE(daemon_->pump_until([&] {
      for (int i = 0; i < 100; ++i) {
        if (popgate_check(client.get(), &request, &verdict) != POPGATE_BLOCK) return false;
        if (verdict.limit == limit) return true;
      }
      return false;
    })) << limit;
  }
  EXPECT_EQ(popgate_tick(client.get()), POPGATE_OK);  // does nothing, harms nothing
}

// Answers a hello with what a test wants to send.
class OddDaemon {
 public:
  explicit OddDaemon(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
  }
  void accept() {
    connection_.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(connection_.is_open());
  }
  void send(const AttachMessage& message, std::span<const int> descriptors) {
    EXPECT_EQ(send_attach(connection_.get(), message, descriptors), AttachSent::kSent);
  }

 private:
  FileDescriptor listener_;
  FileDescriptor connection_;
};

TEST_F(ClientTest, what_cannot_be_understood_is_refused_and_counted_and_checks_pass) {
  OddDaemon odd(socket_path_);
  const FileDescriptor garbage = read_only_file(std::vector<std::byte>(8192, std::byte{0x5a}));
  AttachMessage foreign;
  foreign.kind = AttachKind::kWelcome;
  foreign.version = 2;
  AttachMessage damaged;
  damaged.kind = AttachKind::kWelcome;
  damaged.table_bytes = damaged.rules_bytes = 8192;
  AttachMessage longer_than_the_file = damaged;
  longer_than_the_file.table_bytes = 1U << 20;
  AttachMessage refusal;
  refusal.kind = AttachKind::kRefused;
  const std::array<int, 2> files = {garbage.get(), garbage.get()};
  const std::span<const int> none;
  for (const auto& [message, descriptors] :
       {std::pair(foreign, std::span<const int>(files)), std::pair(damaged, std::span<const int>(files)),
        std::pair(longer_than_the_file, std::span<const int>(files)), std::pair(damaged, none),
        std::pair(refusal, none)}) {
    const ClientOwner client = open_client(socket_path_);
    odd.accept();
    odd.send(message, descriptors);
    popgate_tick(client.get());
    EXPECT_EQ(statistics_of(client).refused, 1U);
    EXPECT_EQ(statistics_of(client).attached, 0U);
    EXPECT_EQ(popgate_file_descriptor(client.get()), -1);
    const popgate_request request = request_from("192.0.2.1");
    EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
  }
}

TEST_F(ClientTest, addresses_are_read_and_written_in_network_order) {
  popgate_address address;
  EXPECT_EQ(popgate_parse_address("[2001:db8::1]:443", 17, &address), POPGATE_OK);
  EXPECT_EQ(address.bytes, 16);
  in6_addr expected{};
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8::1", &expected), 1);
  EXPECT_EQ(std::memcmp(address.octets, &expected, 16), 0);
  EXPECT_EQ(popgate_parse_address("nobody", 6, &address), POPGATE_INVALID);
  EXPECT_EQ(address.bytes, 0);
  EXPECT_EQ(popgate_parse_address(nullptr, 4, &address), POPGATE_INVALID);

  const ClientOwner client = open_client(socket_path_);
  EXPECT_EQ(popgate_client_address(client.get(), "192.0.2.7", 9, "198.51.100.1", 12, &address), POPGATE_OK);
  EXPECT_EQ(address.bytes, 4);
  EXPECT_EQ(address.octets[3], 7) << "no proxy is trusted: the peer is the client";
}

}  // namespace
}  // namespace popgate
