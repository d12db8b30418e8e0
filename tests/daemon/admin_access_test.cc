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

TEST(AdminAccess, an_order_of_another_user_is_refused_although_the_file_is_open_to_all) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  char folder[] = "/tmp/popgate-admin-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0755), 0);
  const std::string path = std::string(folder) + "/admin.sock";
  EventLoop loop;
  auto server = AdminServer::open(loop, path);
  ASSERT_TRUE(server.ok()) << server.error();
  int orders = 0;
  (*server)->route("POST", "/order", [&](const AdminRequest&, AdminReply reply) {
    ++orders;
    reply.json(200, "{}");
  });
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  for (const auto& [uid, status] : {std::pair(uid_t{65534}, 403), std::pair(uid_t{0}, 200)}) {
    const pid_t child = ask_as(uid, path);
    int ended = 0;
    while (waitpid(child, &ended, WNOHANG) == 0) event_base_loop(loop.base(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    ASSERT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), status - 200) << uid;
  }
  EXPECT_EQ(orders, 1);
  double strangers = 0;
  (*server)->visit([&](const Metric& metric) {
    if (metric.name == "popgate_admin_strangers_refused") strangers = metric.value;
  });
  EXPECT_EQ(strangers, 1);
  std::filesystem::remove_all(folder);
}

TEST(AdminAccess, refused_users_make_a_bounded_number_of_lines) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  char folder[] = "/tmp/popgate-admin-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  ASSERT_EQ(chmod(folder, 0755), 0);
  const std::string path = std::string(folder) + "/admin.sock";
  EventLoop loop;
  auto server = AdminServer::open(loop, path);
  ASSERT_TRUE(server.ok()) << server.error();
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  const CountedLog log;
  for (int i = 0; i < 30; ++i) {
    const pid_t child = ask_as(65534, path);
    int ended = 0;
    while (waitpid(child, &ended, WNOHANG) == 0) event_base_loop(loop.base(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    ASSERT_EQ(WEXITSTATUS(ended), 403 - 200);
  }
  EXPECT_GE(log.lines_with("found uid 65534"), 1U);
  EXPECT_LE(log.lines(), LogLimiter::kLinesInAMinuteMax);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace popgate
