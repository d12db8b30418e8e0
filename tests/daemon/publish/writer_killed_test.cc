// SPDX-License-Identifier: Apache-2.0
//
// A daemon's publishing end, killed thousands of times at any moment, while a worker checks every answer of the table
// and the next daemon takes over what it finds.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include "daemon/publish/publisher.h"
#include "tests/daemon/publish/known_keys.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

using std::chrono::hours;

constexpr int kRounds = 2000;
constexpr int kRoundsPerInspection = 100;
const PopInstant kWall{std::chrono::seconds(1'700'000'000)};

/// One daemon's life, as far as publishing goes. The records are all that it knows of the daemon before.
class Daemon {
 public:
  Daemon(const std::string& folder, HostInstant until) : until_(until) {
    auto opened = Publisher::open({folder, folder, 64, 1, "node-a"}, notes_);
    if (!opened) throw std::runtime_error(opened.error());
    publisher_ = *std::move(opened);
    const auto give = [this](Mitigation m) { held_[m.key] = std::move(m); };
    restored_ = publisher_->restore(give, HostClock::now(), kWall);
    publisher_->reconcile([this](const Key& key) { return enforcement(key); }, HostClock::now());
  }

  void publish(std::uint64_t i, std::uint64_t change, bool lifted) {
    Mitigation m;
    m.key = KnownKeys::key(i);
    // In the records, the rule's id is where the table has its number.
    m.rule = KnownKeys::rule(i, change);
    m.version.counter = change;
    // A record that has ended stands for "not enforced": tombstones are the set's concern, not the publisher's.
    m.until = lifted ? HostClock::now() - std::chrono::seconds(1) : until_;
    held_[m.key] = m;
    publisher_->publish(m, enforcement(m.key), HostClock::now());
  }

  [[nodiscard]] std::optional<Enforcement> enforcement(const Key& key) const {
    const auto it = held_.find(key);
    if (it == held_.end() || it->second.until <= HostClock::now()) return std::nullopt;
    return Enforcement{key, static_cast<RuleNumber>(it->second.rule), it->second.until, false, false};
  }
  [[nodiscard]] const Publisher& publisher() const { return *publisher_; }
  [[nodiscard]] const Restored& restored() const { return restored_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  HostInstant until_;
  std::vector<std::string> notes_;
  std::unique_ptr<Publisher> publisher_;
  Restored restored_;
  std::map<Key, Mitigation> held_;
};

/// How far a daemon in another process has come.
class Progress {
 public:
  Progress() {
    void* page = mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::runtime_error("mmap");
    count_ = new (page) std::atomic<std::uint64_t>(0);
  }
  ~Progress() { munmap(count_, sizeof *count_); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  [[nodiscard]] std::atomic<std::uint64_t>& published() { return *count_; }

 private:
  std::atomic<std::uint64_t>* count_ = nullptr;
};

/// A daemon in a process of its own that publishes without end. Killed by its owner, or with it.
class DaemonProcess {
 public:
  DaemonProcess(const std::string& folder, HostInstant until, std::uint64_t seed, Progress& progress) {
    progress.published() = 0;
    pid_ = fork();
    if (pid_ == 0) live(folder, until, seed, progress);
  }
  ~DaemonProcess() { (void)kill_now(); }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  /// False when it had ended by itself: something was wrong.
  [[nodiscard]] bool kill_now() {
    if (pid_ <= 0) return true;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

 private:
  [[noreturn]] static void live(const std::string& folder, HostInstant until, std::uint64_t seed, Progress& progress) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Daemon daemon(folder, until);
    if (!daemon.notes().empty() || daemon.restored().damaged > 0) _exit(1);
    std::mt19937_64 random(seed);
    for (;;) {
      const std::uint64_t change = random();
      daemon.publish(KnownKeys::comer(random()), change, change % 5 < 2);
      ++progress.published();
    }
  }
  pid_t pid_ = -1;
};

/// Everything that a worker may ask, asked once.
std::string check_all(const WorkerView& table) {
  for (std::uint64_t i = 0; i < KnownKeys::kAll; ++i) {
    const std::string fault = KnownKeys::fault(i, table->look_up(KnownKeys::key(i)));
    if (!fault.empty()) return fault;
  }
  return "";
}

/// After a takeover, table and records say the same.
void inspect(const std::string& folder, HostInstant until, const WorkerView& table) {
  const Daemon daemon(folder, until);
  EXPECT_EQ(daemon.restored().damaged, 0U);
  EXPECT_TRUE(daemon.notes().empty()) << daemon.notes()[0];
  std::size_t enforced = 0;
  for (std::uint64_t i = 0; i < KnownKeys::kAll; ++i) {
    const auto wanted = daemon.enforcement(KnownKeys::key(i));
    const TableAnswer answer = table->look_up(KnownKeys::key(i));
    EXPECT_EQ(answer.live, wanted.has_value()) << "key " << i;
    EXPECT_EQ(answer.rule, wanted ? wanted->rule : 0) << "key " << i;
    enforced += wanted ? 1 : 0;
  }
  EXPECT_EQ(daemon.publisher().live_entries(), enforced);
}

TEST(WriterKilled, no_kill_shows_a_worker_a_wrong_answer_or_hides_a_live_entry) {
  const TestFolder folder;
  const HostInstant until = HostClock::now() + hours(1);
  std::unique_ptr<WorkerView> table;
  {
    Daemon first(folder.path(), until);
    for (std::uint64_t i = 0; i < KnownKeys::kResidents; ++i) first.publish(i, 0, false);
    table = std::make_unique<WorkerView>(first.publisher().table_descriptor(), first.publisher().table_bytes());
  }
  Progress progress;
  std::mt19937_64 random(20260202);
  for (int round = 1; round <= kRounds; ++round) {
    DaemonProcess daemon(folder.path(), until, random(), progress);
    // Killed a random number of look-ups after it has published so many changes, or none: while it starts, takes over,
    // records, or writes the table.
    const std::uint64_t changes = random() % 4 == 0 ? 0 : 1 + random() % 10;
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(20);
    for (std::uint64_t left = random() % 200; left > 0;) {
      const std::uint64_t i = random() % KnownKeys::kAll;
      ASSERT_EQ(KnownKeys::fault(i, (*table)->look_up(KnownKeys::key(i))), "") << "round " << round;
      if (progress.published() >= changes) {
        --left;
      } else {
        std::this_thread::yield();
      }
      ASSERT_LT(HostClock::now(), deadline) << "round " << round << ": the daemon publishes nothing";
    }
    ASSERT_TRUE(daemon.kill_now()) << "round " << round << ": the daemon ended by itself";
    ASSERT_EQ(check_all(*table), "") << "after the kill of round " << round;
    if (round % kRoundsPerInspection == 0) inspect(folder.path(), until, *table);
  }
}

}  // namespace
}  // namespace popgate
