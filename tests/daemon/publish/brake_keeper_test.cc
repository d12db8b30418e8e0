// SPDX-License-Identifier: Apache-2.0
//
// Brakes across daemons: a file, a table, and each of them lost, damaged or behind the other.
#include "daemon/publish/brake_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "daemon/publish/publisher.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Key kKey{0x1234, 0xabcdef0000000001};
const PopInstant kWall{seconds(1'700'000'000)};
constexpr RuleNumber kNumber = 3;

class BrakeKeeperTest : public testing::Test {
 protected:
  BrakeKeeperTest() {
    Rule rule;
    rule.name = "login";
    rule.id = rule_id("login");
    rule.number = kNumber;
    rules_ = RuleSet({rule});
    start();
  }

  void start() {
    notes_.clear();
    std::vector<std::string> open_notes;
    auto opened = Publisher::open({run_.path(), state_.path(), table_entries_, 1, "node-a"}, open_notes);
    ASSERT_TRUE(opened) << opened.error();
    publisher_ = *std::move(opened);
    brakes_ = std::make_unique<Brakes>(
        "node-a", [this](const Brakes::Change&) { publisher_->brakes().publish(*brakes_, rules_, now_); });
    (void)publisher_->restore([](const Mitigation&) {}, now_, kWall);
    publisher_->brakes().restore(
        *brakes_, [this](RuleNumber number) { return number == kNumber ? rules_.by_number(number)->id : RuleId{0}; },
        kWall, notes_);
    publisher_->brakes().finish_restore(*brakes_, rules_, now_);
    publisher_->reconcile([](const Key&) { return std::nullopt; }, now_);
    publisher_->enforce(kKey, Enforcement{kKey, kNumber, now_ + hours(1), false, false}, now_);
  }
  void crash() {
    brakes_.reset();
    publisher_.reset();
  }
  void order(RuleId rule, bool off) {
    ASSERT_TRUE(brakes_->order({.side = BrakeSide::kNode, .rule = rule, .off = off, .reason = "test"}, kWall));
  }
  /// As a worker sees the key.
  bool blocks() const {
    const TableAnswer answer =
        WorkerView(publisher_->table_descriptor(), publisher_->table_bytes())->look_up(kKey, now_);
    EXPECT_TRUE(answer.live);
    return (answer.flags & kTableFlagLogOnly) == 0;
  }
  double figure(std::string_view name) const {
    double value = -1;
    publisher_->brakes().visit([&](const Metric& metric) {
      if (metric.name == name) value = metric.value;
    });
    return value;
  }
  [[nodiscard]] std::string brakes_path() const { return state_.file("brakes"); }

  TestFolder run_;
  TestFolder state_;
  std::uint32_t table_entries_ = 1000;
  HostInstant now_ = HostClock::now();
  RuleSet rules_;
  std::vector<std::string> notes_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Brakes> brakes_;
};

TEST_F(BrakeKeeperTest, a_worker_stops_and_goes_on_at_once) {
  EXPECT_TRUE(blocks());
  order(kEveryRule, true);
  EXPECT_FALSE(blocks());
  order(kEveryRule, false);
  EXPECT_TRUE(blocks());
  order(rule_id("login"), true);
  EXPECT_FALSE(blocks());
  order(rule_id("login"), false);
  EXPECT_TRUE(blocks());
  order(rule_id("another"), true);
  EXPECT_TRUE(blocks());
}

TEST_F(BrakeKeeperTest, an_operators_block_stops_for_everything_only) {
  publisher_->enforce(kKey, Enforcement{kKey, kNumber, now_ + hours(1), false, true}, now_);
  order(rule_id("login"), true);
  EXPECT_TRUE(blocks());
  order(kEveryRule, true);
  EXPECT_FALSE(blocks());
}

TEST_F(BrakeKeeperTest, orders_outlive_the_daemon_and_the_table) {
  order(rule_id("login"), true);
  crash();
  std::filesystem::remove_all(run_.file("mitigations.table"));  // a reboot
  start();
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_FALSE(blocks());
  EXPECT_EQ(brakes_->find(BrakeSide::kNode, rule_id("login"))->reason, "test");
}

TEST_F(BrakeKeeperTest, a_damaged_file_is_refused_and_what_the_table_says_is_off_stays_off) {
  order(kEveryRule, true);
  crash();
  std::ofstream(brakes_path()) << "rubbish";
  start();
  EXPECT_FALSE(blocks());
  ASSERT_EQ(notes_.size(), 2U);
  EXPECT_THAT(notes_[0], HasSubstr("brakes.refused"));
  EXPECT_THAT(notes_[1], HasSubstr("stays off until an operator turns it on"));
  EXPECT_EQ(brakes_->find(BrakeSide::kNode, kEveryRule)->origin, BrakeOrigin::kRecovered);
  // Which is now on disk again, and ends by an order.
  crash();
  start();
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_FALSE(blocks());
  order(kEveryRule, false);
  EXPECT_TRUE(blocks());
}

TEST_F(BrakeKeeperTest, a_table_made_after_a_reboot_is_a_witness_too) {
  order(kEveryRule, true);
  crash();
  std::filesystem::remove_all(run_.file("mitigations.table"));  // a reboot
  start();
  crash();
  std::ofstream(brakes_path()) << "rubbish";
  start();
  EXPECT_TRUE(brakes_->is_off(kEveryRule, true));
  EXPECT_FALSE(blocks());
}

TEST_F(BrakeKeeperTest, a_rule_that_is_off_in_the_table_alone_stays_off) {
  order(rule_id("login"), true);
  crash();
  std::filesystem::remove(brakes_path());
  start();
  EXPECT_FALSE(blocks());
  EXPECT_TRUE(brakes_->is_off(rule_id("login"), false));
  EXPECT_FALSE(brakes_->is_off(kEveryRule, true));
}

TEST_F(BrakeKeeperTest, what_is_off_in_a_table_of_another_size_alone_stays_off) {
  order(rule_id("login"), true);
  order(kEveryRule, true);
  crash();
  std::filesystem::remove(brakes_path());
  table_entries_ = 4000;
  start();
  EXPECT_TRUE(brakes_->is_off(kEveryRule, true));
  EXPECT_TRUE(brakes_->is_off_by_itself(rule_id("login")));
  EXPECT_FALSE(blocks());
  EXPECT_EQ(notes_.size(), 2U);
}

TEST_F(BrakeKeeperTest, a_rule_that_was_off_beside_everything_stays_off_when_everything_goes_on_again) {
  order(rule_id("login"), true);
  order(kEveryRule, true);
  crash();
  std::filesystem::remove(brakes_path());
  start();
  order(kEveryRule, false);
  EXPECT_FALSE(blocks());
  order(rule_id("login"), false);
  EXPECT_TRUE(blocks());
}

TEST_F(BrakeKeeperTest, with_file_and_table_lost_blocking_is_on) {
  order(kEveryRule, true);
  crash();
  std::filesystem::remove(brakes_path());
  std::filesystem::remove_all(run_.file("mitigations.table"));
  start();
  EXPECT_TRUE(blocks());
}

TEST_F(BrakeKeeperTest, a_file_that_cannot_be_written_keeps_nothing_from_being_off_here_and_after_a_restart) {
  std::filesystem::create_directory(brakes_path() + ".new");  // in the way of every write, also for root
  order(kEveryRule, true);
  EXPECT_FALSE(blocks());
  EXPECT_FALSE(publisher_->brakes().is_written());
  crash();
  start();
  EXPECT_FALSE(blocks());
  std::filesystem::remove(brakes_path() + ".new");
  order(kEveryRule, false);
  EXPECT_TRUE(publisher_->brakes().is_written());
  crash();
  start();
  EXPECT_TRUE(blocks());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(BrakeKeeperTest, what_could_not_be_written_is_written_by_itself_when_that_is_possible_after_a_pause) {
  std::filesystem::create_directory(brakes_path() + ".new");
  order(kEveryRule, true);
  EXPECT_EQ(figure("popgate_publish_brakes_unwritten"), 1);
  EXPECT_EQ(figure("popgate_publish_brakes_unwritten_total"), 1);
  for (int i = 0; i < 5; ++i) {
    now_ += kBrakeRetryInterval / 5;
    publisher_->brakes().retry(*brakes_, now_);
  }
  EXPECT_EQ(figure("popgate_publish_brakes_unwritten_total"), 2) << "one try a second";
  std::filesystem::remove(brakes_path() + ".new");
  now_ += kBrakeRetryInterval;
  publisher_->brakes().retry(*brakes_, now_);
  EXPECT_TRUE(publisher_->brakes().is_written());
  EXPECT_EQ(figure("popgate_publish_brakes_unwritten"), 0);
  crash();
  std::filesystem::remove_all(run_.file("mitigations.table"));  // a reboot
  start();
  EXPECT_FALSE(blocks());
}

TEST_F(BrakeKeeperTest, what_is_written_is_not_written_again) {
  order(kEveryRule, true);
  std::filesystem::remove(brakes_path());
  now_ += hours(1);
  publisher_->brakes().retry(*brakes_, now_);
  EXPECT_FALSE(std::filesystem::exists(brakes_path()));
}

TEST_F(BrakeKeeperTest, no_order_after_a_lost_file_has_a_version_that_the_table_has_seen) {
  order(kEveryRule, true);
  order(kEveryRule, false);
  const BrakeVersion given = brakes_->find(BrakeSide::kNode, kEveryRule)->version;
  crash();
  std::filesystem::remove(brakes_path());
  start();
  ASSERT_TRUE(brakes_->order({.side = BrakeSide::kPop, .rule = kEveryRule, .off = true}, kWall - hours(1)));
  EXPECT_GT(brakes_->find(BrakeSide::kPop, kEveryRule)->version, given);
}

TEST_F(BrakeKeeperTest, an_order_to_go_on_that_never_reached_the_disk_is_forgotten_and_the_brake_stays_on) {
  order(kEveryRule, true);
  std::filesystem::create_directory(brakes_path() + ".new");
  order(kEveryRule, false);
  EXPECT_TRUE(blocks());
  crash();
  start();
  EXPECT_FALSE(blocks()) << "in doubt it is off";
}

TEST_F(BrakeKeeperTest, a_daemon_killed_before_its_words_were_right_is_put_right_by_the_file) {
  order(kEveryRule, true);
  order(kEveryRule, false);
  // As if it had been killed after the file and before the words: they still say off, under the older stamp.
  crash();
  {
    std::vector<std::string> notes;
    auto table = TableFile::open(run_.file("mitigations.table"), bucket_count_for(1000), 1, notes);
    ASSERT_TRUE(table) << table.error();
    write_brakes((*table)->brakes(), {true, {kNumber}});
    (*table)->store_brakes_stamp((*table)->brakes_stamp() - 1);
  }
  start();
  EXPECT_TRUE(blocks());
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(BrakeKeeperTest, a_rule_whose_number_changes_stays_off) {
  order(rule_id("login"), true);
  Rule moved = *rules_.by_number(kNumber);
  moved.number = 9;
  publisher_->enforce(kKey, Enforcement{kKey, 9, now_ + hours(1), false, false}, now_);
  rules_ = RuleSet({moved});
  publisher_->brakes().use_rules(*brakes_, rules_);
  EXPECT_FALSE(blocks());
}

}  // namespace
}  // namespace popgate
