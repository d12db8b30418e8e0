// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a simulated PoP whose wall clocks are wrong, or not known to be right yet: what they count, and what becomes
// of the hits that they may not count.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/simulation/pop.h"

namespace popgate::simulation {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr Key kClient{7, 11};

Rule a_rule() {
  Rule rule;
  rule.name = "login";
  rule.number = 1;
  rule.key = {{}};
  rule.limit = 100;
  rule.window = WindowShape::make(seconds(60), kSlotsDefault, Pop::kTolerance);
  rule.mitigate = seconds(60);
  identify(rule);
  return rule;
}

/// Three nodes, one shard; all but the last node are known to have the right clock when a test begins.
class ClockedPop : public ::testing::Test {
 protected:
  ClockedPop() {
    spdlog::set_level(spdlog::level::off);
    pop_.shards().front()->start();
    for (const auto& node : pop_.nodes()) {
      if (node.get() != &last()) node->start();
    }
    run(seconds(10));
  }
  void run(microseconds duration) { world_.run_until(world_.now() + duration); }
  [[nodiscard]] Node& last() { return *pop_.nodes().back(); }
  void hit(std::uint64_t times) {
    const Rule& rule = pop_.rules().all().front();
    for (; times > 0; --times) {
      pop_.stamps().hit(last(), rule, kClient);
      last().record(rule, kClient);
    }
  }
  void set_path_to_peers(const Path& as) {
    for (const auto& node : pop_.nodes()) {
      pop_.network().for_both(last().host(), node->host(), [&](Path& path) { path = as; });
    }
  }
  void cut_from_peers(bool cut) { set_path_to_peers({.cut = cut}); }
  [[nodiscard]] std::uint64_t counted() { return pop_.truth().counted(); }
  [[nodiscard]] std::uint64_t account(LedgerColumn column) { return last().pipeline().ledger().row(1)[column]; }
  [[nodiscard]] ClockStanding standing() { return last().pipeline().clock_guard().standing(); }

  World world_{1};
  Pop pop_{world_, {.nodes = 3, .shards = 1, .rules = RuleSet(std::vector<Rule>{a_rule()})}};
};

class WrongAtTheStart : public ClockedPop, public ::testing::WithParamInterface<microseconds> {};

TEST_P(WrongAtTheStart, clock_counts_nothing_at_all) {
  last().machine().step_wall(GetParam());
  hit(5);  // no daemon yet
  last().start();
  for (int i = 0; i < 100; ++i) {
    hit(1);
    run(milliseconds(50));
  }
  EXPECT_EQ(standing(), ClockStanding::kOff);
  EXPECT_EQ(counted(), 0U);
  last().machine().step_wall(-GetParam());
  run(seconds(1));
  EXPECT_EQ(standing(), ClockStanding::kRight);
  hit(3);
  run(seconds(1));
  EXPECT_EQ(counted(), 3U);
  EXPECT_EQ(account(LedgerColumn::kDelivered), 3U);
  EXPECT_EQ(account(LedgerColumn::kDropped) + account(LedgerColumn::kExpired), 105U);
}

INSTANTIATE_TEST_SUITE_P(By, WrongAtTheStart,
                         ::testing::Values(milliseconds(60), milliseconds(-60), seconds(7), seconds(-7), hours(1),
                                           hours(-1)));

TEST_F(ClockedPop, right_clock_at_the_start_counts_what_waited_and_no_shard_is_degraded_for_it) {
  hit(5);
  last().start();
  hit(5);
  run(milliseconds(1));
  EXPECT_EQ(standing(), ClockStanding::kUnjudged);
  run(seconds(1));
  EXPECT_EQ(standing(), ClockStanding::kRight);
  EXPECT_EQ(account(LedgerColumn::kDelivered), 10U);
  EXPECT_EQ(last().figure("popgate_count_shard_degraded_entered"), 0);
}

TEST_F(ClockedPop, node_that_hears_nobody_waits_and_then_counts_alone) {
  cut_from_peers(true);
  last().start();
  hit(10);
  run(ClockGuard::kJudgedWithin - milliseconds(10));
  EXPECT_EQ(counted(), 0U);
  EXPECT_EQ(last().figure("popgate_count_hits_unsent"), 10);
  EXPECT_EQ(last().figure("popgate_count_shard_degraded_entered"), 0);
  run(milliseconds(300));
  EXPECT_EQ(counted(), 10U);
  cut_from_peers(false);
  run(seconds(3));
  EXPECT_EQ(standing(), ClockStanding::kRight);
  EXPECT_EQ(account(LedgerColumn::kDelivered), 10U);
}

TEST_F(ClockedPop, clock_set_before_anybody_judged_it_gives_up_what_it_stamped_before) {
  last().machine().step_wall(seconds(-1));
  last().start();
  hit(10);
  run(milliseconds(3));  // they are in the daemon; no peer has answered
  ASSERT_EQ(standing(), ClockStanding::kUnjudged);
  last().machine().step_wall(seconds(1));
  run(seconds(3));
  EXPECT_EQ(standing(), ClockStanding::kRight);
  EXPECT_EQ(counted(), 0U) << "into slots of a second earlier";
  EXPECT_EQ(account(LedgerColumn::kDropped), 10U);
}

TEST_F(ClockedPop, orderly_stop_before_the_clock_is_judged_loses_nothing) {
  cut_from_peers(true);
  last().start();
  hit(10);
  run(milliseconds(20));
  bool stopped = false;
  last().stop([&] { stopped = true; });
  run(Node::kStopWait);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(counted(), 10U);
  last().start();
  EXPECT_EQ(account(LedgerColumn::kDelivered), 10U);
  EXPECT_EQ(account(LedgerColumn::kLost), 0U);
}

TEST_F(ClockedPop, orderly_stop_while_the_clock_is_off_accounts_what_may_not_be_counted_and_waits_for_nothing) {
  last().start();
  run(seconds(5));
  last().machine().step_wall(seconds(1));
  run(seconds(1));
  ASSERT_EQ(standing(), ClockStanding::kOff);
  hit(10);
  bool stopped = false;
  last().stop([&] { stopped = true; });
  run(milliseconds(200));
  ASSERT_TRUE(stopped);
  EXPECT_EQ(counted(), 0U);
  last().start();
  EXPECT_EQ(account(LedgerColumn::kDropped), 10U);
  EXPECT_EQ(account(LedgerColumn::kLost), 0U);
}

TEST_F(ClockedPop, clock_found_off_during_an_orderly_stop_accounts_what_waited) {
  last().machine().step_wall(seconds(1));
  last().start();
  hit(10);
  run(microseconds(500));
  ASSERT_EQ(standing(), ClockStanding::kUnjudged);
  bool stopped = false;
  last().stop([&] { stopped = true; });
  run(seconds(1));
  ASSERT_TRUE(stopped) << "its peers have told it long since";
  EXPECT_EQ(counted(), 0U);
  last().start();
  EXPECT_EQ(account(LedgerColumn::kDropped), 10U);
}

// However the step falls between two looks at the clocks.
TEST_F(ClockedPop, hit_stamped_after_a_step_is_never_counted) {
  last().start();
  run(seconds(5));
  for (int i = 0; i < 100; ++i) {
    run(milliseconds(203));
    const microseconds step = i % 2 == 0 ? seconds(1) : -seconds(1);
    last().machine().step_wall(step);
    hit(1);
    run(milliseconds(203));
    EXPECT_EQ(counted(), 0U);
    last().machine().step_wall(-step);
    run(milliseconds(100));
  }
  EXPECT_EQ(account(LedgerColumn::kDropped), 100U);
}

// Nobody was ever heard, so nothing says how a step moves the clock from the middle: it is to be judged anew.
TEST_F(ClockedPop, hit_stamped_after_a_step_is_not_counted_by_a_node_that_never_heard_a_peer) {
  cut_from_peers(true);
  last().start();
  run(seconds(5));
  ASSERT_EQ(standing(), ClockStanding::kRight);
  for (int i = 0; i < 10; ++i) {
    run(milliseconds(203));
    last().machine().step_wall(seconds(1));
    hit(1);
    run(milliseconds(203));
    EXPECT_EQ(standing(), ClockStanding::kUnjudged);
    EXPECT_EQ(counted(), 0U);
    run(ClockGuard::kJudgedWithin);
  }
  EXPECT_EQ(account(LedgerColumn::kDropped), 10U);
}

// Whatever is under way when the clock is set: the answer says what stands in slots that are no longer the window's.
TEST_F(ClockedPop, answer_that_comes_after_a_step_claims_no_upper_bound) {
  last().start();
  run(seconds(5));
  pop_.network().for_both(last().host(), Pop::kFirstShard, [](Path& path) { path.delay = milliseconds(15); });
  std::uint64_t judged = 0;
  Node::Watch watch;
  watch.judged = [&](Node& node, const SlotTotals& totals, const JudgedTotals& answer) {
    if (!node.machine().is_off() || totals.slots.empty()) return;
    ++judged;
    EXPECT_FALSE(answer.rate.hi.has_value());
  };
  pop_.watch(watch);
  for (int i = 0; i < 50; ++i) {
    hit(1);
    run(milliseconds(i));
    last().machine().step_wall(seconds(1));
    run(milliseconds(300));
    last().machine().step_wall(-seconds(1));
    run(milliseconds(300));
  }
  EXPECT_GT(judged, 0U);
}

// Whatever comes due first when it goes on: the next flush, an answer that was under way, or news of the connections
// that its peers have ended, which they do after a second.
TEST_F(ClockedPop, after_a_pause_hits_wait_for_the_clock_to_be_judged_by_what_is_heard_since) {
  set_path_to_peers({.delay = milliseconds(15)});
  last().start();
  for (int i = 1; i <= 25; ++i) {
    run(milliseconds(5000 + 37 * i));
    last().process().pause();
    hit(10);
    run(i % 2 == 0 ? seconds(20) : milliseconds(1020));
    last().process().resume();
    run(milliseconds(1));
    EXPECT_EQ(standing(), ClockStanding::kUnjudged);
    EXPECT_EQ(counted(), static_cast<std::uint64_t>(i - 1) * 10);
    run(seconds(2));
    EXPECT_EQ(standing(), ClockStanding::kRight);
    EXPECT_EQ(counted(), static_cast<std::uint64_t>(i) * 10);
  }
}

}  // namespace
}  // namespace popgate::simulation
