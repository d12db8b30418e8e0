// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of a ring, killed at every instruction of a drain and a fold.
//
// A child does both, single-stepped. Whenever what it shares with the next daemon has changed, the test takes a copy of
// it (what a kill at this instruction would leave), lets a next daemon open the copy, and checks the account.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "daemon/collect/ledger_format.h"
#include "daemon/collect/ring_reader.h"
#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

constexpr std::uint32_t kSlots = kRingSlotsMin;
constexpr std::uint64_t kWaiting = 12;  // hits that the child drains; a few, because every instruction is a step
constexpr std::uint64_t kDropped = 5;

// What outlives the daemon, as bytes that can be put into a copy.
struct Shared {
  std::vector<std::byte> ledger;
  std::vector<std::byte> ring;    // header and slots
  std::vector<std::byte> folded;  // the first page of folded counts
};

class EveryInstruction : public testing::Test {
 protected:
  void SetUp() override {
    std::string note;
    auto ledger = Ledger::open(path_, note);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    rule_ = *(*ledger)->number_for(1);
    ASSERT_TRUE(ring_.create(kSlots, "worker"));
    const auto map = [&](Mapping& mapping, int fd, std::size_t bytes) {
      return mapping.map(fd, bytes, PROT_READ | PROT_WRITE, false);
    };
    ASSERT_TRUE(map(ring_memory_, ring_.file_descriptor(), ring_bytes(kSlots)));
    const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(map(ledger_memory_, file.get(), ledger_bytes(kLedgerRowsFirst)));
    for (std::uint64_t n = 0; n < kSlots + kDropped; ++n) (void)ring_.record({{n, n}, 0, rule_, 1});
    // All but the last few are drained and delivered before the steps begin.
    auto reader = RingReader::open(FileDescriptor(dup(ring_.file_descriptor())), **ledger);
    ASSERT_TRUE(reader.ok()) << reader.error();
    (*reader)->look();
    (*ledger)->add(rule_, LedgerColumn::kDelivered, (*reader)->drain(kSlots - kWaiting).size());
  }

  [[nodiscard]] Shared shared() const {
    const auto copy = [](const Mapping& from, std::size_t offset, std::size_t bytes) {
      return std::vector<std::byte>(from.data() + offset, from.data() + offset + bytes);
    };
    return {copy(ledger_memory_, 0, ledger_memory_.bytes()), copy(ring_memory_, 0, ring_dropped_offset(kSlots)),
            copy(ring_memory_, ring_folded_offset(kSlots), 4096)};
  }

  [[nodiscard]] bool is_unchanged(const Shared& last) const {
    const auto same = [](const Mapping& now, std::size_t offset, const std::vector<std::byte>& before) {
      return std::memcmp(now.data() + offset, before.data(), before.size()) == 0;
    };
    return same(ledger_memory_, 0, last.ledger) && same(ring_memory_, 0, last.ring) &&
           same(ring_memory_, ring_folded_offset(kSlots), last.folded);
  }

  // The child: stops itself where the steps are to begin, and ends with a system call that the test watches for.
  [[noreturn]] void be_daemon(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    std::string note;
    auto ledger = Ledger::open(path_, note);
    if (!ledger.ok()) _exit(1);
    auto reader = RingReader::open(FileDescriptor(dup(ring_.file_descriptor())), **ledger);
    if (!reader.ok()) _exit(1);
    (*reader)->look();
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
    raise(SIGSTOP);
    (*ledger)->add(rule_, LedgerColumn::kDelivered, (*reader)->drain().size());
    (void)(*reader)->fold();
    _exit(0);
  }

  // A next daemon on a copy of what the killed one left.
  void expect_exact_account(const Shared& left) {
    const std::string path = directory_.file("copy");
    {
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file.write(reinterpret_cast<const char*>(left.ledger.data()), static_cast<std::streamsize>(left.ledger.size()));
    }
    HitRing ring;
    ASSERT_TRUE(ring.create(kSlots, ""));
    Mapping memory;
    ASSERT_TRUE(memory.map(ring.file_descriptor(), ring_bytes(kSlots), PROT_READ | PROT_WRITE, false));
    std::memcpy(memory.data(), left.ring.data(), left.ring.size());
    std::memcpy(memory.data() + ring_dropped_offset(kSlots), ring_memory_.data() + ring_dropped_offset(kSlots), 4096);
    std::memcpy(memory.data() + ring_folded_offset(kSlots), left.folded.data(), left.folded.size());

    std::string note;
    auto ledger = Ledger::open(path, note);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    ASSERT_EQ(note, "");
    auto reader = RingReader::open(FileDescriptor(dup(ring.file_descriptor())), **ledger);
    ASSERT_TRUE(reader.ok()) << reader.error();
    (*reader)->look();
    const std::uint64_t drained_before = (*ledger)->row(rule_)[LedgerColumn::kDrained];
    ASSERT_EQ((*reader)->waiting() + drained_before, kSlots) << "a hit is waiting or drained, never both or neither";
    ASSERT_EQ((*reader)->drain().size(), kSlots - drained_before);
    while ((*reader)->fold()) {
    }
    const LedgerRow row = (*ledger)->row(rule_);
    ASSERT_EQ(row[LedgerColumn::kDrained], kSlots);
    ASSERT_EQ(row[LedgerColumn::kRingDropped], kDropped);
    ASSERT_EQ(row[LedgerColumn::kDelivered] + row[LedgerColumn::kLost], drained_before);
    lost_ = std::max(lost_, row[LedgerColumn::kLost]);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("ledger");
  RuleNumber rule_ = kNoRule;
  HitRing ring_;
  Mapping ring_memory_;
  Mapping ledger_memory_;
  std::uint64_t lost_ = 0;
};

TEST_F(EveryInstruction, leaves_an_exact_account) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) be_daemon(parent);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
    GTEST_SKIP() << "this system does not let a parent trace its child";
  ASSERT_TRUE(WIFSTOPPED(status));
  Shared last = shared();
  int states = 1;
  std::uint64_t steps = 0;
  constexpr std::uint64_t kStepsMax = 1'000'000;
  for (; steps < kStepsMax; ++steps) {
    ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr), 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status)) break;
    if (is_unchanged(last)) continue;
    last = shared();
    ++states;
    ASSERT_NO_FATAL_FAILURE(expect_exact_account(last)) << "killed at step " << steps;
  }
  ASSERT_TRUE(WIFEXITED(status)) << steps;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  // Journal, rows, account and ring change one store after another: far more states than two.
  EXPECT_GT(states, 20);
  EXPECT_EQ(lost_, kWaiting) << "at some instruction all that was drained is lost, and said to be";
}

}  // namespace
}  // namespace popgate
