// SPDX-License-Identifier: Apache-2.0
// Whoever reaches the worker socket, and a worker that writes rubbish, cannot fill the disk with log lines.
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "daemon/collect/workers.h"
#include "libclient/record/hit_ring.h"
#include "tests/daemon/counted_log.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

constexpr int kAttempts = 100;

class WorkersFloodTest : public testing::Test {
 protected:
  void SetUp() override {
    (void)*ledger_->number_for(1);
    Workers::Options options;
    options.socket_path = path_;
    auto workers = Workers::open(loop_, options, *ledger_, [](const Hit&, PopInstant) {});
    ASSERT_TRUE(workers.ok()) << workers.error();
    workers_ = *std::move(workers);
  }
  [[nodiscard]] static FileDescriptor connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    FileDescriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
    return fd;
  }
  [[nodiscard]] bool pump_until(const std::function<bool()>& condition) {
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (HostClock::now() > deadline) return false;
      event_base_loop(loop_.base(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
    return true;
  }
  [[nodiscard]] double figure(std::string_view name) const {
    double value = 0;
    workers_->visit([&](const Metric& metric) {
      if (metric.name == name) value += metric.value;
    });
    return value;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("workers.sock");
  EventLoop loop_;
  std::unique_ptr<Ledger> ledger_ = Ledger::in_memory();
  std::unique_ptr<Workers> workers_;
};

TEST_F(WorkersFloodTest, refused_workers_make_a_bounded_number_of_lines) {
  const CountedLog log;
  for (int i = 0; i < kAttempts; ++i) {
    const FileDescriptor worker = connect(path_);
    ASSERT_EQ(send(worker.get(), "rubbish", 7, MSG_NOSIGNAL), 7);
    ASSERT_TRUE(pump_until([&] { return figure("popgate_collect_workers_refused") == i + 1; }));
  }
  EXPECT_GE(log.lines(), 1U);
  EXPECT_LE(log.lines(), LogLimiter::kLinesInAMinuteMax);
}

TEST_F(WorkersFloodTest, strangers_make_a_bounded_number_of_lines_and_a_figure_of_their_own) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const CountedLog log;
  ASSERT_EQ(chmod(path_.substr(0, path_.rfind('/')).c_str(), 0755), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(255);
    int connected = 0;
    for (int i = 0; i < kAttempts; ++i) connected += connect(path_).is_open() ? 1 : 0;
    _exit(connected == kAttempts ? 0 : 1);
  }
  int ended = 0;
  ASSERT_TRUE(pump_until([&] { return waitpid(stranger, &ended, WNOHANG) == stranger; }));
  ASSERT_TRUE(WIFEXITED(ended));
  ASSERT_EQ(WEXITSTATUS(ended), 0);
  EXPECT_TRUE(pump_until([&] { return figure("popgate_collect_strangers_refused") == kAttempts; }));
  EXPECT_EQ(figure("popgate_collect_workers_refused"), 0) << "they are no workers";
  EXPECT_GE(log.lines_with("found uid 65534"), 1U);
  EXPECT_LE(log.lines(), LogLimiter::kLinesInAMinuteMax);
}

TEST_F(WorkersFloodTest, rubbish_in_a_ring_is_counted_and_logs_nothing) {
  const CountedLog log;
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, ""));
  const FileDescriptor worker = connect(path_);
  const int descriptors[] = {ring.file_descriptor()};
  ASSERT_EQ(send_attach(worker.get(), AttachMessage{}, descriptors), AttachSent::kSent);
  ASSERT_TRUE(pump_until([&] { return workers_->status().size() == 1; }));
  const std::size_t bytes = ring_bytes(kRingSlotsMin);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.file_descriptor(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto& header = *static_cast<RingHeader*>(mapped);
  std::mt19937_64 random(1);
  const auto rejected = [&] {
    return figure("popgate_collect_slots_rejected") + figure("popgate_collect_positions_rejected");
  };
  EXPECT_TRUE(pump_until([&] {
    for (std::size_t at = ring_slots_offset(); at + 8 <= bytes; at += 8) {
      const std::uint64_t noise = random();
      std::memcpy(static_cast<char*>(mapped) + at, &noise, sizeof noise);
    }
    header.head.store(random() % 2 == 0 ? random() : header.tail.load() + kRingSlotsMin / 2);
    return rejected() > 1000;
  }));
  munmap(mapped, bytes);
  EXPECT_EQ(log.lines(), 0U);
}

}  // namespace
}  // namespace popgate
