// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "daemon/collect/ledger_format.h"
#include "libclient/mapping.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

class LedgerTest : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Ledger> open() {
    note_.clear();
    Result<std::unique_ptr<Ledger>> ledger = Ledger::open(path_, note_);
    EXPECT_TRUE(ledger.ok()) << ledger.error();
    return ledger.ok() ? std::move(*ledger) : nullptr;
  }
  // The file's bytes, to damage them or to look at them.
  [[nodiscard]] Mapping bytes() const {
    const FileDescriptor fd(::open(path_.c_str(), O_RDWR));
    Mapping mapping;
    EXPECT_TRUE(mapping.map(fd.get(), std::filesystem::file_size(path_), PROT_READ | PROT_WRITE, false));
    return mapping;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("ledger");
  std::string note_;
};

LedgerHeader& header_of(const Mapping& mapping) { return *reinterpret_cast<LedgerHeader*>(mapping.data()); }
LedgerJournal& journal_of(const Mapping& mapping) {
  return *reinterpret_cast<LedgerJournal*>(mapping.data() + kLedgerJournalOffset);
}
LedgerRecord& record_of(const Mapping& mapping, RuleNumber rule) {
  return reinterpret_cast<LedgerRecord*>(mapping.data() + kLedgerRowsOffset)[rule];
}

TEST_F(LedgerTest, columns_add_up_and_the_rest_is_pending) {
  const auto ledger = Ledger::in_memory();
  const RuleNumber rule = *ledger->number_for(77);
  ledger->add(rule, LedgerColumn::kDrained, 100);
  ledger->add(rule, LedgerColumn::kDelivered, 50);
  ledger->add(rule, LedgerColumn::kUncertain, 5);
  ledger->add(rule, LedgerColumn::kDropped, 6);
  ledger->add(rule, LedgerColumn::kExpired, 7);
  ledger->add(rule, LedgerColumn::kRingDropped, 1000);  // never drained: no part of pending
  EXPECT_EQ(ledger->row(rule)[LedgerColumn::kDelivered], 50U);
  EXPECT_EQ(ledger->row(rule).rule, 77U);
  EXPECT_EQ(ledger->row(rule).pending(), 100U - 50 - 5 - 6 - 7);
}

TEST_F(LedgerTest, a_rule_keeps_its_number_across_daemons_and_number_0_is_nobodys) {
  auto ledger = open();
  const RuleNumber a = *ledger->number_for(1001);
  const RuleNumber b = *ledger->number_for(1002);
  EXPECT_NE(a, b);
  EXPECT_NE(a, kNoRule);
  EXPECT_NE(b, kNoRule);
  EXPECT_EQ(*ledger->number_for(1001), a);
  EXPECT_FALSE(ledger->number_for(0).has_value());
  ledger.reset();
  ledger = open();
  EXPECT_EQ(*ledger->number_for(1002), b);
  EXPECT_EQ(*ledger->number_for(1001), a);
  EXPECT_EQ(ledger->rows(), (std::vector<RuleNumber>{std::min(a, b), std::max(a, b)}));
}

TEST_F(LedgerTest, a_released_row_is_given_out_again_empty) {
  const auto ledger = Ledger::in_memory();
  const RuleNumber a = *ledger->number_for(1);
  const RuleNumber b = *ledger->number_for(2);
  ledger->add(a, LedgerColumn::kDrained, 9);
  ledger->release(a);
  EXPECT_FALSE(ledger->has_row(a));
  ledger->add(a, LedgerColumn::kDrained, 9);  // nobody's: ignored
  EXPECT_EQ(*ledger->number_for(3), a);
  EXPECT_EQ(ledger->row(a)[LedgerColumn::kDrained], 0U);
  EXPECT_EQ(*ledger->number_for(2), b);
}

TEST_F(LedgerTest, grows_to_as_many_rows_as_rules_come) {
  auto ledger = open();
  for (RuleId rule = 1; rule <= 5000; ++rule) EXPECT_EQ(*ledger->number_for(rule), rule);
  ledger->add(4999, LedgerColumn::kDrained, 3);
  ledger.reset();
  ledger = open();
  EXPECT_EQ(note_, "");
  EXPECT_EQ(ledger->rows().size(), 5000U);
  EXPECT_EQ(ledger->row(4999)[LedgerColumn::kDrained], 3U);
}

TEST_F(LedgerTest, what_a_daemon_left_pending_is_lost_once) {
  auto ledger = open();
  const RuleNumber rule = *ledger->number_for(7);
  ledger->add(rule, LedgerColumn::kDrained, 10);
  ledger->add(rule, LedgerColumn::kDelivered, 4);
  for (int daemon = 0; daemon < 3; ++daemon) {
    ledger.reset();
    ledger = open();
    EXPECT_EQ(ledger->row(rule)[LedgerColumn::kLost], 6U);
    EXPECT_EQ(ledger->row(rule).pending(), 0U);
  }
}

TEST_F(LedgerTest, a_second_daemon_is_refused_while_the_first_runs) {
  auto first = open();
  std::string note;
  const auto second = Ledger::open(path_, note);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find("another daemon"), std::string::npos) << second.error();
  EXPECT_NE(second.error().find(path_), std::string::npos);
  first.reset();
  EXPECT_NE(open(), nullptr);
}

TEST_F(LedgerTest, is_for_its_owner_only) {
  const auto ledger = open();
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(LedgerTest, a_drain_moves_rows_and_account_together) {
  auto ledger = open();
  const RuleNumber a = *ledger->number_for(1);
  const RuleNumber b = *ledger->number_for(2);
  RingStep step{17, kNoRule, 0, 0};
  const RingId ring{3, 4};
  const RingAccount account = ledger->account_for(ring, step);
  EXPECT_EQ(step.tail, 17U) << "a ring that it does not know: what the ring itself says";
  ledger->drain(account, 42, std::vector<RuleHits>{{a, 5}, {b, 6}});
  ledger->fold(account, b, 8, 108);
  ledger.reset();
  ledger = open();
  EXPECT_EQ(ledger->row(a)[LedgerColumn::kDrained], 5U);
  EXPECT_EQ(ledger->row(b)[LedgerColumn::kDrained], 6U);
  EXPECT_EQ(ledger->row(b)[LedgerColumn::kRingDropped], 8U);
  step = {99, kNoRule, 0, 0};
  EXPECT_EQ(ledger->account_for(ring, step), account);
  EXPECT_EQ(step.tail, 42U) << "a ring that it knows: what the ledger took";
  EXPECT_EQ(step.fold_rule, b);
  EXPECT_EQ(step.fold_count, 108U);
  ledger->forget(account);
  step = {50, kNoRule, 0, 0};
  (void)ledger->account_for(ring, step);
  EXPECT_EQ(step.tail, 50U);
}

// Killed at each point of a step that can be told apart from outside: before the commit, after it, and half way through
// the stores.
TEST_F(LedgerTest, a_committed_step_is_done_by_the_next_daemon_and_an_uncommitted_one_by_nobody) {
  auto ledger = open();
  const RuleNumber rule = *ledger->number_for(1);
  RingStep step;
  const RingId ring{3, 4};
  const RingAccount account = ledger->account_for(ring, step);
  ledger->drain(account, 10, std::vector<RuleHits>{{rule, 10}});
  ledger->add(rule, LedgerColumn::kDelivered, 10);
  for (const bool committed : {false, true}) {
    for (const bool half_stored : {false, true}) {
      ledger.reset();
      {
        const Mapping file = bytes();
        record_of(file, rule).columns[0].store(half_stored && committed ? 15 : 10);
        LedgerJournal& journal = journal_of(file);
        journal.account = account;
        journal.step = {15, kNoRule, 0, 0};
        journal.update_count = 1;
        journal.updates[0] = {rule, static_cast<std::uint32_t>(LedgerColumn::kDrained), 15};
        journal.committed.store(committed ? 1 : 0);
      }
      ledger = open();
      ASSERT_EQ(note_, "");
      EXPECT_EQ(ledger->row(rule)[LedgerColumn::kDrained], committed ? 15U : 10U);
      EXPECT_EQ(ledger->row(rule)[LedgerColumn::kLost], committed ? 5U : 0U);
      step = {};
      (void)ledger->account_for(ring, step);
      EXPECT_EQ(step.tail, committed ? 15U : 10U);
    }
  }
}

TEST_F(LedgerTest, rings_beyond_the_limit_push_out_the_one_not_seen_for_longest) {
  auto ledger = open();
  RingStep step;
  for (std::uint64_t i = 0; i < 3; ++i) {
    step = {100 + i, kNoRule, 0, 0};
    (void)ledger->account_for({1, i}, step);
  }
  ledger.reset();
  ledger = open();
  (void)ledger->account_for({1, 1}, step);  // seen by the second daemon
  for (std::uint64_t i = 0; i < kRingAccountsMax - 1; ++i) {
    step = {};
    (void)ledger->account_for({2, i}, step);
  }
  step = {};
  (void)ledger->account_for({1, 1}, step);
  EXPECT_EQ(step.tail, 101U);
  step = {7, kNoRule, 0, 0};
  (void)ledger->account_for({2, 5}, step);
  EXPECT_EQ(step.tail, 0U) << "still known";
}

TEST_F(LedgerTest, a_file_that_was_never_finished_is_made_afresh) {
  std::ofstream(path_) << std::string(100, '\0');
  EXPECT_NE(open(), nullptr);
  EXPECT_EQ(note_, "");
}

TEST_F(LedgerTest, what_cannot_be_read_is_put_aside_and_said) {
  const auto damage = [&](const std::function<void(const Mapping&)>& how, const std::string& expected) {
    auto ledger = open();
    const RuleNumber rule = *ledger->number_for(5);
    ledger->add(rule, LedgerColumn::kDrained, 1);
    ledger.reset();
    {
      const Mapping file = bytes();
      how(file);
    }
    ledger = open();
    EXPECT_NE(note_.find(expected), std::string::npos) << note_;
    EXPECT_NE(note_.find(path_ + ".refused"), std::string::npos) << note_;
    EXPECT_TRUE(std::filesystem::exists(path_ + ".refused"));
    ASSERT_NE(ledger, nullptr);
    EXPECT_TRUE(ledger->rows().empty());
  };
  damage([](const Mapping& file) { header_of(file).magic = 1; }, "not a ledger");
  damage([](const Mapping& file) { ++header_of(file).version; }, "checksum");
  damage([](const Mapping& file) { header_of(file).row_count.store(1U << 20); }, "rows");
  damage([](const Mapping& file) { record_of(file, 1).columns[1].store(2); }, "more hits than were drained");
  damage([](const Mapping& file) { record_of(file, 2).rule.store(5); }, "has one already");
  damage(
      [](const Mapping& file) {
        journal_of(file).update_count = 1;
        journal_of(file).updates[0].rule = kRuleNumbersMax;
        journal_of(file).committed.store(1);
      },
      "journal");
  std::filesystem::remove(path_);
  std::ofstream(path_) << std::string(100, 'x');
  EXPECT_NE(open(), nullptr);
  EXPECT_NE(note_.find("100 bytes"), std::string::npos) << note_;
}

TEST_F(LedgerTest, without_room_for_it_opening_fails_and_nothing_is_killed_later) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit little{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &little);
    std::string note;
    const auto ledger = Ledger::open(path_, note);
    _exit(!ledger.ok() && ledger.error().find("no room") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(open(), nullptr) << "and the next one, with room, starts";
}

// Any sequence of steps, with daemons that come and go in between, ends where plain addition ends.
RC_GTEST_PROP(LedgerProperty, equals_plain_addition_across_daemons, ()) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("ledger");
  std::string note;
  auto ledger = *Ledger::open(path, note);
  std::map<RuleId, std::map<int, std::uint64_t>> expected;
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, RuleId, std::uint64_t>>>(
      rc::gen::tuple(rc::gen::inRange(0, 8), rc::gen::inRange<RuleId>(1, 6), rc::gen::inRange<std::uint64_t>(0, 1000)));
  for (const auto& [what, rule, hits] : steps) {
    const RuleNumber number = *ledger->number_for(rule);
    auto& row = expected[rule];
    const auto drained = static_cast<int>(LedgerColumn::kDrained);
    const auto lost = static_cast<int>(LedgerColumn::kLost);
    std::uint64_t pending = row[drained];
    for (int column = 1; column <= lost; ++column) pending -= row[column];
    if (what == 7) {
      ledger.reset();
      for (auto& [id, columns] : expected) {
        std::uint64_t left = columns[drained];
        for (int column = 1; column < lost; ++column) left -= columns[column];
        columns[lost] = left;
      }
      ledger = *Ledger::open(path, note);
    } else if (what == 0 || what == 6) {
      ledger->add(number, static_cast<LedgerColumn>(what), hits);
      row[what] += hits;
    } else if (what != lost) {
      ledger->add(number, static_cast<LedgerColumn>(what), std::min(hits, pending));
      row[what] += std::min(hits, pending);
    }
  }
  for (auto& [rule, columns] : expected) {
    const LedgerRow row = ledger->row(*ledger->number_for(rule));
    for (int column = 0; column < static_cast<int>(LedgerColumn::kCount); ++column) {
      RC_ASSERT(row.columns[column] == columns[column]);
    }
  }
}

}  // namespace
}  // namespace popgate
