// SPDX-License-Identifier: Apache-2.0
//
// Who is let in by the daemon's sockets. Where the test runs as root, another user really tries.
#include "daemon/socket_access.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "daemon/unix_listener.h"

namespace popgate {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr uid_t kStranger = 65534;
constexpr gid_t kGroup = 45678;  // of nobody on any host
constexpr SocketOwner kDaemon{.user = 1000, .group = 1000};

SocketPeer peer(uid_t uid, std::vector<gid_t> groups) { return {.pid = 1, .uid = uid, .groups = std::move(groups)}; }

TEST(SocketAccess, root_and_the_daemons_user_always_may_and_nobody_else_by_themselves) {
  for (const mode_t mode : {0600U, 0660U, 0666U}) {
    EXPECT_TRUE(may_connect(peer(0, {0}), {mode, kGroup}, kDaemon));
    EXPECT_TRUE(may_connect(peer(1000, {5}), {mode, kGroup}, kDaemon));
  }
  EXPECT_FALSE(may_connect(peer(33, {kGroup}), {0600, kGroup}, kDaemon)) << "the group has no permission";
  EXPECT_TRUE(may_connect(peer(33, {kGroup}), {0660, kGroup}, kDaemon));
  EXPECT_TRUE(may_connect(peer(33, {33, 7, kGroup}), {0660, kGroup}, kDaemon)) << "a supplementary group";
  EXPECT_FALSE(may_connect(peer(33, {33, 7}), {0660, kGroup}, kDaemon));
  EXPECT_TRUE(may_connect(peer(33, {1000}), {0660, std::nullopt}, kDaemon)) << "the daemon's own group";
  EXPECT_FALSE(may_connect(peer(33, {0}), {0660, std::nullopt}, kDaemon)) << "root's group is not root";
  EXPECT_TRUE(may_connect(peer(33, {33}), {0666, kGroup}, kDaemon)) << "the operator has opened it to all";
}

TEST(SocketAccess, a_group_is_known_by_name_and_number_and_others_are_refused) {
  EXPECT_EQ(*group_number("root"), 0U);
  EXPECT_EQ(*group_number("45678"), kGroup);
  EXPECT_THAT(group_number("no-such-group-here").error(), HasSubstr("found \"no-such-group-here\", allowed: a group"));
}

TEST(SocketAccess, the_other_end_is_who_the_kernel_says) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const auto other = socket_peer(ends[0]);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->uid, geteuid());
  EXPECT_EQ(other->pid, getpid());
  EXPECT_THAT(other->groups, Contains(getegid()));
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(socket_peer(-1));
}

class AnotherUser : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    char folder[] = "/tmp/popgate-access-XXXXXX";
    folder_ = mkdtemp(folder);
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    path_ = folder_ + "/a.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Exit status of a stranger's attempt: 0 when connect() succeeds, else errno. `group`: a supplementary one.
  int connects(std::optional<gid_t> group) const {
    const pid_t child = fork();
    if (child == 0) {
      const gid_t groups[1] = {group.value_or(0)};
      if (setgroups(group ? 1 : 0, groups) != 0 || setgid(kStranger) != 0 || setuid(kStranger) != 0) _exit(255);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path_.copy(address.sun_path, sizeof address.sun_path - 1);
      const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(errno);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(AnotherUser, connects_as_a_member_of_the_configured_group_only) {
  const auto listener = UnixListener::listen(path_, {"test", SOCK_STREAM, 0660, 8, kGroup});
  ASSERT_TRUE(listener.ok()) << listener.error();
  struct stat about {};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_gid, kGroup);
  EXPECT_EQ(about.st_mode & 07777U, 0660U);
  EXPECT_EQ(connects(std::nullopt), EACCES);
  EXPECT_EQ(connects(kGroup), 0);
}

// The file was opened wider by somebody: the connection is looked at all the same.
TEST_F(AnotherUser, is_not_let_in_by_a_file_that_was_opened_to_all) {
  const auto listener = UnixListener::listen(path_, {"test", SOCK_STREAM, 0660, 8, kGroup});
  ASSERT_TRUE(listener.ok()) << listener.error();
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  for (const std::optional<gid_t> group : {std::optional<gid_t>(), std::optional<gid_t>(kGroup)}) {
    ASSERT_EQ(connects(group), 0);
    const int accepted = accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(accepted, 0);
    const auto stranger = socket_peer(accepted);
    ASSERT_TRUE(stranger);
    EXPECT_EQ(stranger->uid, kStranger);
    EXPECT_EQ(may_connect(*stranger, {0660, kGroup}, SocketOwner::this_process()), group.has_value());
    close(accepted);
  }
}

}  // namespace
}  // namespace popgate
