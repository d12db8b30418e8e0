// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of a ring killed at random instants, again and again, while the worker records: the account is
// exact every time.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "daemon/collect/ring_reader.h"
#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

// Drains and delivers, and now and then folds, as fast as it can, until it is killed.
[[noreturn]] void be_daemon(const std::string& path, int ring, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::string note;
  auto ledger = Ledger::open(path, note);
  if (!ledger.ok() || !note.empty()) _exit(1);
  auto reader = RingReader::open(FileDescriptor(dup(ring)), **ledger);
  if (!reader.ok()) _exit(1);
  for (unsigned turn = 0;; ++turn) {
    (*reader)->look();
    for (const Hit& hit : (*reader)->drain(256)) {
      (*ledger)->add(hit.rule, hit.key.hi % 3 == 0 ? LedgerColumn::kExpired : LedgerColumn::kDelivered, hit.cost);
    }
    if (turn % 8 == 0) (void)(*reader)->fold();
  }
}

struct Account {
  std::uint64_t recorded = 0;
  std::uint64_t dropped = 0;
};

class DaemonKilled : public testing::Test {
 protected:
  void SetUp() override {
    auto ledger = Ledger::open(path_, note_);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    for (RuleId id = 1; id <= 3; ++id) rules_.push_back(*(*ledger)->number_for(id));
    ASSERT_TRUE(ring_.create(kRingSlotsMin, "worker"));
    ASSERT_TRUE(memory_.map(ring_.file_descriptor(), kRingHeaderBytes, PROT_READ, false));
  }

  // What the worker does, with an account of its own.
  void record(int hits) {
    for (int i = 0; i < hits; ++i, ++next_) {
      const RuleNumber rule = rules_[next_ % rules_.size()];
      const auto cost = static_cast<std::uint32_t>(next_ % 5 + 1);
      Account& account = expected_[rule];
      (ring_.record({{next_, next_}, 0, rule, cost}) ? account.recorded : account.dropped) += cost;
    }
  }
  [[nodiscard]] std::uint64_t tail() const {
    return reinterpret_cast<const RingHeader*>(memory_.data())->tail.load(std::memory_order_acquire);
  }
  // Records until the daemon's side has begun to drain, a random moment longer, and kills it.
  void run_and_kill(pid_t child) {
    const std::uint64_t before = tail();
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(5);
    while (tail() == before && HostClock::now() < deadline) record(64);
    const HostInstant end = HostClock::now() + microseconds(random_() % 1000);
    while (HostClock::now() < end) record(64);
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the daemon's side ended by itself, status " << status;
    ASSERT_NE(tail(), before) << "the daemon's side did nothing";
  }
  void expect_exact_account(const Ledger& ledger, const RingReader& reader) {
    std::map<RuleNumber, std::uint64_t> waiting;
    std::map<RuleNumber, std::uint64_t> dropped;
    reader.add_pending(waiting, dropped);
    for (const RuleNumber rule : rules_) {
      const LedgerRow row = ledger.row(rule);
      ASSERT_EQ(row[LedgerColumn::kDrained] + waiting[rule], expected_[rule].recorded);
      ASSERT_EQ(row[LedgerColumn::kRingDropped] + dropped[rule], expected_[rule].dropped);
      ASSERT_EQ(row[LedgerColumn::kDelivered] + row[LedgerColumn::kExpired] + row[LedgerColumn::kLost],
                row[LedgerColumn::kDrained]);
      lost_ = std::max(lost_, row[LedgerColumn::kLost]);
    }
    ASSERT_EQ(reader.figures().slots_rejected + reader.figures().positions_rejected, 0U);
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("ledger");
  std::string note_;
  std::vector<RuleNumber> rules_;
  HitRing ring_;
  Mapping memory_;
  std::map<RuleNumber, Account> expected_;
  std::mt19937_64 random_{11};
  std::uint64_t next_ = 0;
  std::uint64_t lost_ = 0;
};

TEST_F(DaemonKilled, at_any_instant_leaves_an_exact_account) {
  static auto& never_destroyed = *new std::vector<RingReader*>;  // reachable for ever: no leak
  constexpr int kRoundsMin = 200;
  constexpr int kRoundsMax = 2000;
  const auto seen_enough = [&] { return lost_ > 0 && expected_[rules_[0]].dropped > 0; };
  for (int round = 0; round < kRoundsMin || (round < kRoundsMax && !seen_enough()); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const pid_t parent = getpid();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) be_daemon(path_, ring_.file_descriptor(), parent);
    ASSERT_NO_FATAL_FAILURE(run_and_kill(child));

    auto ledger = Ledger::open(path_, note_);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    ASSERT_EQ(note_, "");
    auto reader = RingReader::open(FileDescriptor(dup(ring_.file_descriptor())), **ledger);
    ASSERT_TRUE(reader.ok()) << reader.error();
    ASSERT_NO_FATAL_FAILURE(expect_exact_account(**ledger, **reader));
    // Not destroyed as a daemon that ends would: the next one finds accounts as a killed daemon leaves them.
    if (round % 2 == 0) never_destroyed.push_back(reader->release());
  }
  EXPECT_TRUE(seen_enough()) << "the kills came at harmless instants only, or the ring was never full";
}

}  // namespace
}  // namespace popgate
