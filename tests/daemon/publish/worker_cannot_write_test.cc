// SPDX-License-Identifier: Apache-2.0
//
// What a worker of another user can do with the descriptors that it is handed: read, and nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "daemon/publish/publisher.h"
#include "daemon/publish/rules_file.h"
#include "libclient/record/hit_ring.h"
#include "tests/daemon/publish/test_folder.h"

namespace popgate {
namespace {

constexpr uid_t kWorker = 65534;

/// Which attempt of a worker succeeded; 0: none did, and it could read.
enum Misdeed { kNone = 0, kReopened = 1, kMapped = 2, kProtected = 3, kTruncated = 4, kWritten = 5, kUnreadable = 6 };

int attempts_on(int fd) {
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  for (const int flags : {O_RDWR, O_WRONLY, O_RDWR | O_TRUNC}) {
    if (open(again.c_str(), flags | O_CLOEXEC) >= 0) return kReopened;
  }
  if (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED) return kMapped;
  void* const mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return kUnreadable;
  if (mprotect(mapped, 4096, PROT_READ | PROT_WRITE) == 0) return kProtected;
  if (ftruncate(fd, 0) == 0 || fallocate(fd, 0, 0, 1 << 20) == 0) return kTruncated;
  return pwrite(fd, "x", 1, 0) >= 0 ? kWritten : kNone;
}

int as_a_worker(int fd) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kWorker) != 0 || setuid(kWorker) != 0) _exit(100);
    // A worker that was started as its user may look at its own /proc; so that this one may, too.
    if (prctl(PR_SET_DUMPABLE, 1) != 0 || access(("/proc/self/fd/" + std::to_string(fd)).c_str(), F_OK) != 0)
      _exit(101);
    _exit(attempts_on(fd));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
}

class WorkerCannotWrite : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  TestFolder folder_;
};

TEST_F(WorkerCannotWrite, the_rules) {
  std::string note;
  const auto file = RulesFile::write(folder_.path() + "/rules", std::vector<std::byte>(8192), note);
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(as_a_worker(file->read_only_descriptor()), kNone);
}

TEST_F(WorkerCannotWrite, the_table) {
  std::vector<std::string> notes;
  const auto publisher = Publisher::open(
      {.run_dir = folder_.path(), .state_dir = folder_.path(), .table_entries = 1024, .incarnation = 1, .node = "a"},
      notes);
  ASSERT_TRUE(publisher.ok()) << publisher.error();
  EXPECT_EQ(as_a_worker((*publisher)->table_descriptor()), kNone);
}

// Its own ring it may write; shorter or longer than the daemon mapped it, it cannot make it.
TEST(WorkerCannotResize, a_ring_that_the_daemon_has_mapped) {
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, "w"));
  const off_t bytes = static_cast<off_t>(ring_bytes(kRingSlotsMin));
  for (const off_t other : {off_t{0}, bytes - 4096, bytes + 4096}) {
    EXPECT_EQ(ftruncate(ring.file_descriptor(), other), -1) << other;
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_EQ(fcntl(ring.file_descriptor(), F_ADD_SEALS, F_SEAL_WRITE), -1) << "seals are sealed";
}

}  // namespace
}  // namespace popgate
