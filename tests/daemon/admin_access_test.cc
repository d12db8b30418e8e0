// SPDX-License-Identifier: Apache-2.0
//
// The admin server answers nobody else, also when the socket's file was opened wider.
#include <event2/event.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "daemon/admin_server.h"
#include "tests/daemon/counted_log.h"

namespace popgate {
namespace {

// The status line's code that user `uid` gets for an order; 0: no answer.
pid_t ask_as(uid_t uid, const std::string& path) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (uid != 0 && (setgroups(0, nullptr) != 0 || setgid(uid) != 0 || setuid(uid) != 0)) _exit(255);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(254);
  const std::string request = "POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
  if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) _exit(253);
  char reply[13] = {};  // "HTTP/1.1 403"
  std::size_t got = 0;
  while (got < 12) {
    const ssize_t bytes = read(fd, reply + got, 12 - got);
    if (bytes <= 0) _exit(252);
    got += static_cast<std::size_t>(bytes);
  }
  _exit(atoi(reply + 9) - 200);
}

/// A server whose file is open to all.
class AdminAccess : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    ASSERT_NE(mkdtemp(folder_), nullptr);
    ASSERT_EQ(chmod(folder_, 0755), 0);
    path_ = std::string(folder_) + "/admin.sock";
    auto server = AdminServer::open(loop_, path_);
    ASSERT_TRUE(server.ok()) << server.error();
    server_ = *std::move(server);
    ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The exit status of ask_as(); -1 when it did not come to one.
  int answer_to(uid_t uid) {
    const pid_t child = ask_as(uid, path_);
    int ended = 0;
    while (waitpid(child, &ended, WNOHANG) == 0) event_base_loop(loop_.base(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  }

  char folder_[32] = "/tmp/popgate-admin-XXXXXX";
  std::string path_;
  EventLoop loop_;
  std::unique_ptr<AdminServer> server_;
};

TEST_F(AdminAccess, an_order_of_another_user_is_refused_although_the_file_is_open_to_all) {
  int orders = 0;
  server_->route("POST", "/order", [&](const AdminRequest&, AdminReply reply) {
    ++orders;
    reply.json(200, "{}");
  });
  for (const auto& [uid, status] : {std::pair(uid_t{65534}, 403), std::pair(uid_t{0}, 200)}) {
    EXPECT_EQ(answer_to(uid), status - 200) << uid;
  }
  EXPECT_EQ(orders, 1);
  double strangers = 0;
  server_->visit([&](const Metric& metric) {
    if (metric.name == "popgate_admin_strangers_refused") strangers = metric.value;
  });
  EXPECT_EQ(strangers, 1);
}

TEST_F(AdminAccess, refused_users_make_a_bounded_number_of_lines) {
  const CountedLog log;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(answer_to(65534), 403 - 200);
  }
  EXPECT_GE(log.lines_with("found uid 65534"), 1U);
  EXPECT_LE(log.lines(), LogLimiter::kLinesInAMinuteMax);
}

}  // namespace
}  // namespace popgate
