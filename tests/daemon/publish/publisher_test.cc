// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

const Key kKey{0x1234, 0xabcdef0000000001};
const Key kOther{0x5678, 0xabcdef0000000002};
const PopInstant kWall{seconds(1'700'000'000)};

Mitigation mitigation(const Key& key, HostInstant until, std::uint64_t counter = 1) {
  Mitigation m;
  m.key = key;
  m.rule = 77;
  m.version = {0, counter, node_id("node-a"), 5};
  m.until = until;
  m.decided_at = kWall;
  m.until_wall = kWall + hours(1);
  m.decided_by = "node-a";
  return m;
}

/// A daemon's publishing end, with the least of what stands before it: which enforcement holds for which key.
class PublisherTest : public testing::Test {
 protected:
  PublisherTest() { now_ = HostClock::now(); }

  void start() {
    notes_.clear();
    auto opened = Publisher::open({run_.path(), state_.path(), 1000, 1, "node-a"}, notes_);
    ASSERT_TRUE(opened) << opened.error();
    publisher_ = *std::move(opened);
    restored_.clear();
    report_ = publisher_->restore([this](Mitigation m) { restored_.push_back(std::move(m)); }, now_, kWall);
    for (const Mitigation& m : restored_) wanted_[m.key] = {m.key, 3, m.until, false, false};
  }
  void reconcile() {
    publisher_->reconcile([this](const Key& key) { return wanted(key); }, now_);
  }
  std::optional<Enforcement> wanted(const Key& key) const {
    const auto it = wanted_.find(key);
    return it == wanted_.end() || it->second.until <= now_ ? std::nullopt : std::optional(it->second);
  }
  void publish(const Mitigation& m) {
    wanted_[m.key] = {m.key, 3, m.until, false, false};
    publisher_->publish(m, wanted(m.key), now_);
  }
  void crash() {
    publisher_.reset();
    wanted_.clear();
  }
  TableAnswer look_up(const Key& key) const {
    return WorkerView(publisher_->table_descriptor(), publisher_->table_bytes())->look_up(key, now_);
  }

  TestFolder run_;
  TestFolder state_;
  HostInstant now_;
  std::vector<std::string> notes_;
  std::unique_ptr<Publisher> publisher_;
  std::vector<Mitigation> restored_;
  Restored report_;
  std::map<Key, Enforcement> wanted_;
};

TEST_F(PublisherTest, published_mitigation_is_what_workers_see_until_it_ends) {
  start();
  reconcile();
  EXPECT_FALSE(look_up(kKey).live);
  publish(mitigation(kKey, now_ + minutes(1)));
  EXPECT_TRUE(look_up(kKey).live);
  EXPECT_EQ(look_up(kKey).rule, 3U);
  EXPECT_FALSE(look_up(kOther).live);
  now_ += minutes(1) + kUntilStep;
  EXPECT_FALSE(look_up(kKey).live);
}

TEST_F(PublisherTest, flags_of_the_enforcement_reach_the_workers) {
  start();
  reconcile();
  publisher_->publish(mitigation(kKey, now_ + minutes(1)), Enforcement{kKey, 9, now_ + minutes(1), true, true}, now_);
  EXPECT_EQ(look_up(kKey).flags, kTableFlagLogOnly | kTableFlagOperator);
  publisher_->enforce(kKey, Enforcement{kKey, 9, now_ + minutes(1), false, true}, now_);
  EXPECT_EQ(look_up(kKey).flags, kTableFlagOperator);
}

TEST_F(PublisherTest, mitigation_that_no_longer_holds_is_taken_out_at_once) {
  start();
  reconcile();
  const Mitigation m = mitigation(kKey, now_ + minutes(1));
  publish(m);
  publisher_->publish(m, std::nullopt, now_);
  EXPECT_FALSE(look_up(kKey).live);
}

TEST_F(PublisherTest, next_daemon_restores_and_enforces_what_the_last_one_published) {
  start();
  EXPECT_FALSE(report_.found);
  reconcile();
  const Mitigation m = mitigation(kKey, now_ + minutes(1), 41);
  publish(m);
  crash();
  start();
  EXPECT_TRUE(report_.found);
  EXPECT_GE(report_.counter, 41U);
  ASSERT_EQ(restored_.size(), 1U);
  EXPECT_EQ(restored_[0].version, m.version);
  EXPECT_EQ(restored_[0].until, m.until);
  EXPECT_TRUE(look_up(kKey).live) << "workers keep their blocks while the next daemon starts";
  reconcile();
  EXPECT_TRUE(look_up(kKey).live);
  EXPECT_TRUE(notes_.empty()) << notes_[0];
}

TEST_F(PublisherTest, counter_is_kept_although_every_decision_has_ended) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + seconds(1), 1'000'000));
  crash();
  now_ += seconds(1) + kEndedKept;
  start();
  EXPECT_TRUE(restored_.empty());
  EXPECT_GE(report_.counter, 1'000'000U);
  EXPECT_LE(report_.counter, 1'000'000U + kCounterStep);
}

TEST_F(PublisherTest, entry_that_no_record_explains_is_deleted_by_the_next_daemon) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + minutes(1)));
  publish(mitigation(kOther, now_ + minutes(1)));
  crash();
  std::filesystem::remove(state_.file("mitigations.records"));
  start();
  EXPECT_TRUE(look_up(kKey).live);
  reconcile();
  EXPECT_FALSE(look_up(kKey).live);
  EXPECT_EQ(publisher_->live_entries(), 0U);
}

TEST_F(PublisherTest, table_that_was_lost_is_filled_again_from_the_records) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + minutes(1)));
  crash();
  std::filesystem::remove(run_.file("mitigations.table"));
  start();
  reconcile();
  EXPECT_TRUE(look_up(kKey).live);
}

TEST_F(PublisherTest, what_is_published_before_reconcile_is_in_the_table_after_it) {
  start();
  publish(mitigation(kKey, now_ + minutes(1)));
  reconcile();
  EXPECT_TRUE(look_up(kKey).live);
}

TEST_F(PublisherTest, ended_version_does_not_come_back_to_life_with_the_next_daemon) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + hours(1), 1));
  publish(mitigation(kKey, now_ - seconds(1), 2));  // a newer version that has ended already
  EXPECT_FALSE(look_up(kKey).live);
  crash();
  start();
  reconcile();
  EXPECT_FALSE(look_up(kKey).live);
}

TEST_F(PublisherTest, lift_is_recorded_beside_the_block_that_it_ends) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + hours(1), 1));
  Mitigation lift = mitigation(kKey, now_ + hours(1), 2);
  lift.space = Space::kOperator;
  lift.lifted = true;
  lift.version.epoch = 5;
  publisher_->publish(lift, std::nullopt, now_);
  crash();
  start();
  ASSERT_EQ(restored_.size(), 2U);
  EXPECT_TRUE(restored_[0].lifted != restored_[1].lifted);
}

TEST_F(PublisherTest, sweep_takes_ended_entries_and_records_out) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + seconds(1)));
  EXPECT_EQ(publisher_->live_entries(), 1U);
  now_ += seconds(2);
  publisher_->sweep(now_);
  EXPECT_EQ(publisher_->live_entries(), 0U);
  now_ += kEndedKept;
  publisher_->sweep(now_);
  crash();
  start();
  EXPECT_TRUE(restored_.empty());
}

TEST_F(PublisherTest, second_daemon_on_the_same_folders_is_refused) {
  start();
  std::vector<std::string> notes;
  const auto second = Publisher::open({run_.path(), state_.path(), 1000, 2, "node-a"}, notes);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error(), HasSubstr("mitigations.table: in use by another daemon"));
  TestFolder other_run;
  const auto third = Publisher::open({other_run.path(), state_.path(), 1000, 2, "node-a"}, notes);
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error(), HasSubstr("mitigations.records: in use by another daemon"));
}

TEST_F(PublisherTest, state_folder_that_cannot_be_used_is_noted_and_the_daemon_goes_on_and_makes_up_for_it) {
  const std::string folder = state_.file("missing");
  std::vector<std::string> notes;
  auto opened = Publisher::open({run_.path(), folder, 1000, 1, "node-a"}, notes);
  ASSERT_TRUE(opened) << opened.error();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], AllOf(HasSubstr(folder), HasSubstr("No such file"), HasSubstr("a restart forgets them")));
  publisher_ = *std::move(opened);
  EXPECT_FALSE(publisher_->restore([](Mitigation) {}, now_, kWall).found);
  reconcile();
  publish(mitigation(kKey, now_ + minutes(1)));
  EXPECT_TRUE(look_up(kKey).live);

  std::filesystem::create_directory(folder);
  (void)publisher_->sweep(now_);  // tried a moment ago
  now_ += kRecordRetryInterval;
  (void)publisher_->sweep(now_);
  crash();
  opened = Publisher::open({run_.path(), folder, 1000, 2, "node-a"}, notes);
  ASSERT_TRUE(opened) << opened.error();
  publisher_ = *std::move(opened);
  std::vector<Key> given;
  EXPECT_TRUE(publisher_->restore([&](Mitigation m) { given.push_back(m.key); }, now_, kWall).found);
  EXPECT_EQ(given, std::vector<Key>{kKey});
}

// As when the disk is mounted after the daemon was started.
TEST_F(PublisherTest, records_that_come_into_reach_later_are_restored_and_enforced_then) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + minutes(1)));
  crash();
  const std::string away = state_.path() + ".away";
  std::filesystem::rename(state_.path(), away);
  start();
  EXPECT_TRUE(restored_.empty());
  reconcile();
  EXPECT_FALSE(look_up(kKey).live);
  std::filesystem::rename(away, state_.path());
  now_ += kRecordRetryInterval;
  wanted_[kKey] = {kKey, 3, now_ + minutes(1), false, false};  // as the set has it once it is restored
  (void)publisher_->sweep(now_);
  ASSERT_EQ(restored_.size(), 1U);
  EXPECT_TRUE(look_up(kKey).live);
}

TEST_F(PublisherTest, run_folder_on_a_disk_is_noted) {
  if (std::filesystem::temp_directory_path() == "/dev/shm") GTEST_SKIP() << "there is no folder on a disk to try";
  TestFolder disk(std::filesystem::current_path());
  std::vector<std::string> notes;
  const auto opened = Publisher::open({disk.path(), state_.path(), 1000, 1, "node-a"}, notes);
  ASSERT_TRUE(opened) << opened.error();
  if (notes.empty()) GTEST_SKIP() << "the build folder is on tmpfs";
  EXPECT_THAT(notes[0], HasSubstr("not on tmpfs"));
}

TEST_F(PublisherTest, every_metric_has_a_name_a_meaning_and_its_value) {
  start();
  reconcile();
  publish(mitigation(kKey, now_ + minutes(1)));
  std::map<std::string, double> values;
  publisher_->visit([&](const Metric& metric) {
    EXPECT_TRUE(metric.name.starts_with("popgate_publish_")) << metric.name;
    EXPECT_FALSE(metric.meaning.empty()) << metric.name;
    EXPECT_TRUE(values.emplace(metric.name, metric.value).second) << metric.name;
  });
  EXPECT_EQ(values.at("popgate_publish_entries"), 1);
  EXPECT_EQ(values.at("popgate_publish_inserted_total"), 1);
  EXPECT_EQ(values.at("popgate_publish_records"), 1);
}

}  // namespace
}  // namespace popgate
