// SPDX-License-Identifier: Apache-2.0
//
// The daemon's side of a ring killed at random instants, again and again, while the worker records: the account is
// exact every time.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "daemon/collect/ring_reader.h"
#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

// Drains, delivers some and folds, as fast as it can, until it is killed.
[[noreturn]] void be_daemon(const std::string& path, int ring, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  std::string note;
  auto ledger = Ledger::open(path, note);
  if (!ledger.ok() || !note.empty()) _exit(1);
  auto reader = RingReader::open(FileDescriptor(dup(ring)), **ledger);
  if (!reader.ok()) _exit(1);
  for (;;) {
    (*reader)->look();
    for (const Hit& hit : (*reader)->drain(64)) {
      (*ledger)->add(hit.rule, hit.key.hi % 3 == 0 ? LedgerColumn::kExpired : LedgerColumn::kDelivered, hit.cost);
    }
    (void)(*reader)->fold();
  }
}

struct Account {
  std::uint64_t recorded = 0;
  std::uint64_t dropped = 0;
};

TEST(DaemonKilled, at_any_instant_leaves_an_exact_account) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("ledger");
  std::string note;
  std::vector<RuleNumber> rules;
  {
    auto ledger = Ledger::open(path, note);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    for (RuleId id = 1; id <= 3; ++id) rules.push_back(*(*ledger)->number_for(id));
  }
  HitRing ring;
  ASSERT_TRUE(ring.create(kRingSlotsMin, "worker"));
  std::map<RuleNumber, Account> expected;
  std::mt19937_64 random(11);
  std::uint64_t next = 0;
  std::uint64_t lost = 0;
  static auto& never_destroyed = *new std::vector<RingReader*>;  // reachable for ever: no leak
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    const pid_t parent = getpid();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) be_daemon(path, ring.file_descriptor(), parent);
    const HostInstant end = HostClock::now() + microseconds(500 + random() % 2500);
    while (HostClock::now() < end) {
      for (int i = 0; i < 64; ++i) {
        const RuleNumber rule = rules[next % rules.size()];
        const auto cost = static_cast<std::uint32_t>(next % 5 + 1);
        Account& account = expected[rule];
        (ring.record({{next, next}, 0, rule, cost}) ? account.recorded : account.dropped) += cost;
        ++next;
      }
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the daemon's side ended by itself, status " << status;

    auto ledger = Ledger::open(path, note);
    ASSERT_TRUE(ledger.ok()) << ledger.error();
    ASSERT_EQ(note, "");
    auto reader = RingReader::open(FileDescriptor(dup(ring.file_descriptor())), **ledger);
    ASSERT_TRUE(reader.ok()) << reader.error();
    std::map<RuleNumber, std::uint64_t> waiting;
    std::map<RuleNumber, std::uint64_t> dropped;
    (*reader)->add_pending(waiting, dropped);
    for (const RuleNumber rule : rules) {
      const LedgerRow row = (*ledger)->row(rule);
      ASSERT_EQ(row[LedgerColumn::kDrained] + waiting[rule], expected[rule].recorded) << "round " << round;
      ASSERT_EQ(row[LedgerColumn::kRingDropped] + dropped[rule], expected[rule].dropped) << "round " << round;
      ASSERT_EQ(row[LedgerColumn::kDelivered] + row[LedgerColumn::kExpired] + row[LedgerColumn::kLost],
                row[LedgerColumn::kDrained]);
      lost = std::max(lost, row[LedgerColumn::kLost]);
    }
    ASSERT_EQ((*reader)->figures().slots_rejected + (*reader)->figures().positions_rejected, 0U);
    // Not destroyed as a daemon that ends would: the next one finds accounts as a killed daemon leaves them.
    if (round % 2 == 0) never_destroyed.push_back(reader->release());
  }
  EXPECT_GT(expected[rules[0]].dropped, 0U) << "the ring was never full: the test does not see folds";
  EXPECT_GT(lost, 0U) << "nothing was ever lost with a daemon: the kills came at harmless instants only";
}

}  // namespace
}  // namespace popgate
