// SPDX-License-Identifier: Apache-2.0
//
// When the worker looks for a daemon, on a clock of the test's.
#include "libclient/attach.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

// Accepts and counts; hangs up at once or never says a word.
class SilentDaemon {
 public:
  explicit SilentDaemon(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
  }
  FileDescriptor accept() {
    FileDescriptor connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.is_open()) ++accepted_;
    return connection;
  }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  FileDescriptor listener_;
  int accepted_ = 0;
};

class AttachTest : public testing::Test {
 protected:
  AttachTest() : path_(directory_.file("s")), daemon_(path_), ring_(memfd_create("ring", MFD_CLOEXEC)) {
    EXPECT_TRUE(attachment_.set_path(path_));
    attachment_.set_seed(12345);
  }
  Attachment::Event poll() {
    AttachMessage message;
    AttachDescriptors descriptors;
    return attachment_.poll(now_, ring_.get(), message, descriptors);
  }

  TemporaryDirectory directory_;
  std::string path_;
  SilentDaemon daemon_;
  FileDescriptor ring_;
  Attachment attachment_;
  HostInstant now_{std::chrono::hours(1)};
};

TEST_F(AttachTest, a_daemon_that_hangs_up_is_asked_less_and_less_often) {
  std::vector<HostInstant> attempts;
  for (int tick = 0; tick < 600; ++tick, now_ += milliseconds(10)) {
    (void)poll();
    if (const FileDescriptor connection = daemon_.accept(); connection.is_open()) attempts.push_back(now_);
    (void)poll();
  }
  ASSERT_GE(attempts.size(), 8U);
  // 100 ms, 200, 400, 800, then 1000, each shortened by up to a half; seen at the next tick of 10 ms.
  milliseconds full = kAttachBackoffFirst;
  for (std::size_t i = 1; i < attempts.size(); ++i) {
    EXPECT_GE(attempts[i] - attempts[i - 1], full / 2) << i;
    EXPECT_LE(attempts[i] - attempts[i - 1], full + milliseconds(10)) << i;
    full = std::min(full * 2, kAttachBackoffMax);
  }
}

TEST_F(AttachTest, a_daemon_that_says_nothing_is_left_after_a_while) {
  EXPECT_EQ(poll(), Attachment::Event::kNothing);
  const FileDescriptor connection = daemon_.accept();
  now_ += kWelcomeTimeout;
  EXPECT_EQ(poll(), Attachment::Event::kNothing);
  EXPECT_GE(attachment_.descriptor(), 0);
  now_ += milliseconds(1);
  EXPECT_EQ(poll(), Attachment::Event::kEnded);
  EXPECT_EQ(attachment_.descriptor(), -1);
}

TEST_F(AttachTest, rules_without_a_table_before_them_are_refused) {
  (void)poll();
  const FileDescriptor connection = daemon_.accept();
  AttachMessage rules;
  rules.kind = AttachKind::kRules;
  const int descriptors[] = {ring_.get()};
  ASSERT_EQ(send_attach(connection.get(), rules, descriptors), AttachSent::kSent);
  EXPECT_EQ(poll(), Attachment::Event::kRefused);
  now_ += kAttachBackoffMax / 2 - milliseconds(1);
  EXPECT_EQ(poll(), Attachment::Event::kNothing);
  EXPECT_EQ(daemon_.accept().get(), -1) << "what was refused is not asked again at once";
}

TEST_F(AttachTest, a_descriptor_flood_leaves_no_descriptor_open) {
  (void)poll();
  const FileDescriptor connection = daemon_.accept();
  const int next_before = dup(0);
  close(next_before);
  const AttachMessage hello;  // a worker's word, from a daemon, with a descriptor
  const int descriptors[] = {ring_.get()};
  ASSERT_EQ(send_attach(connection.get(), hello, descriptors), AttachSent::kSent);
  EXPECT_EQ(poll(), Attachment::Event::kRefused);
  const int next_after = dup(0);
  close(next_after);
  EXPECT_LE(next_after, next_before);
}

}  // namespace
}  // namespace popgate
