// SPDX-License-Identifier: Apache-2.0
//
// What cannot be recorded waits, bounded; a file that comes into reach later is read beside the loop.
#include "daemon/publish/record_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "daemon/event_loop.h"
#include "daemon/reactor.h"
#include "tests/daemon/publish/test_folder.h"

namespace popgate {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr NodeId kNode = 42;
const PopInstant kWall{seconds(1'700'000'000)};

Mitigation until(HostInstant end, std::uint64_t key) {
  Mitigation m;
  m.key = {key, key};
  m.rule = 7;
  m.until = end;
  m.until_wall = kWall + minutes(10);
  m.decided_at = kWall;
  m.version = {0, key + 1, kNode, 1};
  return m;
}

EntryId id_of(std::uint64_t key) { return {{key, key}, EntryKind::kAutomatic}; }

// ---- What waits ----

class UnrecordedTest : public testing::Test {
 protected:
  void fill(HostInstant end) {
    for (std::uint64_t key = 1; key <= kUnrecordedMax; ++key) ASSERT_TRUE(waiting_.put(until(end, key), now_));
  }
  HostInstant now_ = HostClock::now();
  Unrecorded waiting_;
};

TEST_F(UnrecordedTest, at_the_bound_a_new_entry_is_refused_and_a_newer_version_is_not) {
  fill(now_ + minutes(1));
  EXPECT_FALSE(waiting_.put(until(now_ + minutes(2), kUnrecordedMax + 1), now_));
  EXPECT_TRUE(waiting_.put(until(now_ + minutes(2), 1), now_));
  EXPECT_EQ(waiting_.size(), kUnrecordedMax);
}

TEST_F(UnrecordedTest, at_the_bound_those_that_have_ended_make_room_the_earliest_first_and_no_others) {
  fill(now_ + minutes(10));
  ASSERT_TRUE(waiting_.put(until(now_ + seconds(2), 5), now_));
  ASSERT_TRUE(waiting_.put(until(now_ + seconds(1), 9), now_));
  now_ += seconds(2);
  EXPECT_TRUE(waiting_.put(until(now_ + minutes(1), kUnrecordedMax + 1), now_));
  EXPECT_FALSE(waiting_.contains(id_of(9)));
  EXPECT_TRUE(waiting_.contains(id_of(5)));
  EXPECT_TRUE(waiting_.put(until(now_ + minutes(1), kUnrecordedMax + 2), now_));
  EXPECT_FALSE(waiting_.contains(id_of(5)));
  EXPECT_FALSE(waiting_.put(until(now_ + minutes(1), kUnrecordedMax + 3), now_));
}

TEST_F(UnrecordedTest, one_that_was_lengthened_has_its_new_end) {
  fill(now_ + seconds(1));
  for (std::uint64_t key = 1; key <= kUnrecordedMax; ++key) {
    const HostInstant end = now_ + (key == 77 ? seconds(1) : minutes(1));
    ASSERT_TRUE(waiting_.put(until(end, key), now_));
  }
  now_ += seconds(1);
  EXPECT_TRUE(waiting_.put(until(now_ + minutes(1), kUnrecordedMax + 1), now_));
  EXPECT_FALSE(waiting_.contains(id_of(77)));
  EXPECT_FALSE(waiting_.put(until(now_ + minutes(1), kUnrecordedMax + 2), now_));
}

// Its older version would be written over the newer one later.
TEST(RecordKeeper, what_is_recorded_after_all_no_longer_waits) {
  const TestFolder folder;
  RecordKeeper keeper({folder.file("records"), 1, kNode}, nullptr);
  std::vector<std::string> notes;
  ASSERT_TRUE(keeper.open(notes));
  HostInstant now = HostClock::now();
  (void)keeper.load([](const Mitigation&) {}, now, kWall);
  keeper.put(until(now + seconds(1), 1), now);
  keeper.put(until(now + minutes(10), 2), now);  // there is room for one record
  EXPECT_EQ(keeper.unrecorded(), 1U);
  now += seconds(1) + kEndedKept;
  EXPECT_EQ(keeper.sweep(10, now), 1U);
  keeper.put(until(now + minutes(20), 2), now);
  EXPECT_EQ(keeper.unrecorded(), 0U);
  EXPECT_TRUE(keeper.holds(id_of(2)));
}

// ---- A file that comes into reach later ----

class RecordKeeperTest : public testing::Test {
 protected:
  void make_file(std::uint64_t records) {
    std::vector<std::string> notes;
    auto file = RecordFile::open(options(), notes);
    ASSERT_TRUE(file) << file.error();
    ASSERT_TRUE((*file)->load([](const Mitigation&) {}, now_, kWall));
    for (std::uint64_t key = 1; key <= records; ++key) ASSERT_TRUE((*file)->put(until(now_ + minutes(10), key)));
  }
  /// Before the folder is there.
  void start() {
    std::filesystem::rename(folder_.path(), away());
    std::vector<std::string> notes;
    ASSERT_TRUE(keeper_.open(notes));
    EXPECT_EQ(notes.size(), 1U);
    const auto give = [this](const Mitigation& m) { given_.insert(m.key.lo); };
    EXPECT_FALSE(keeper_.load(give, now_, kWall).found);
  }
  void bring_folder_back() { std::filesystem::rename(away(), folder_.path()); }
  [[nodiscard]] std::string away() const { return folder_.path() + ".away"; }
  [[nodiscard]] std::vector<Mitigation> recorded() const {
    std::vector<Mitigation> records;
    auto file = RecordFile::open_read_only(options());
    if (!file) return records;
    EXPECT_TRUE((*file)->load([&](Mitigation m) { records.push_back(std::move(m)); }, now_, kWall));
    return records;
  }
  [[nodiscard]] RecordFile::Options options() const { return {folder_.file("records"), 100'000, kNode}; }
  /// The loop turns until the keeper says that everything is recorded.
  void run_until_recorded() {
    const HostInstant deadline = HostClock::now() + seconds(20);
    Timer poll(loop_, [&] {
      if (HostClock::now() > deadline) return loop_.stop();
      now_ += kRecordRetryInterval / 10;
      const std::vector<Key> keys = keeper_.retry(now_);
      most_given_ = std::max(most_given_, keys.size());
      for (const Key& key : keys) told_.insert(key.lo);
      if (keeper_.unrecorded() == 0 && keys.empty() && !told_.empty()) loop_.stop();
    });
    poll.start_every(std::chrono::milliseconds(1));
    loop_.run();
    EXPECT_LE(HostClock::now(), deadline);
  }

  TestFolder folder_;
  EventLoop loop_;
  HostInstant now_ = HostClock::now();
  std::set<std::uint64_t> given_;
  std::set<std::uint64_t> told_;
  std::size_t most_given_ = 0;
  RecordKeeper keeper_{options(), &loop_};
};

TEST_F(RecordKeeperTest, it_is_not_read_on_the_loop_and_what_waited_is_recorded_then) {
  make_file(1);
  start();
  keeper_.put(until(now_ + minutes(1), 5), now_);
  bring_folder_back();
  now_ += kRecordRetryInterval;
  EXPECT_TRUE(keeper_.retry(now_).empty()) << "the loop has not turned since";
  EXPECT_FALSE(keeper_.holds(id_of(1)));
  run_until_recorded();
  EXPECT_TRUE(keeper_.holds(id_of(1)));
  EXPECT_TRUE(keeper_.holds(id_of(5)));
  EXPECT_EQ(given_, std::set<std::uint64_t>{1});
}

TEST_F(RecordKeeperTest, all_that_it_holds_is_given_a_part_in_a_turn) {
  constexpr std::uint64_t kRecords = 3 * kGivenPerTurn + 1;
  make_file(kRecords);
  start();
  bring_folder_back();
  run_until_recorded();
  EXPECT_EQ(given_.size(), kRecords);
  EXPECT_EQ(told_, given_) << "the publisher enforces what it is told";
  EXPECT_EQ(most_given_, kGivenPerTurn);
}

// Versions of a daemon that could not read its records begin anew: what it decided meanwhile may be the lesser one.
TEST_F(RecordKeeperTest, what_waited_is_not_written_over_a_record_that_stands_over_it) {
  make_file(2 * kGivenPerTurn);
  start();
  const auto lesser = [&](std::uint64_t key) {
    Mitigation m = until(now_ + minutes(1), key);
    m.version.counter = 1;
    return m;
  };
  keeper_.put(lesser(1), now_);
  bring_folder_back();
  now_ += kRecordRetryInterval;
  (void)keeper_.retry(now_);
  Timer poll(loop_, [&] {
    now_ += kRecordRetryInterval / 10;
    if (!keeper_.retry(now_).empty()) loop_.stop();
  });
  poll.start_every(std::chrono::milliseconds(1));
  loop_.run();
  poll.stop();
  ASSERT_EQ(given_.size(), kGivenPerTurn) << "it is being given";
  ASSERT_FALSE(given_.contains(2));
  keeper_.put(lesser(2), now_);
  run_until_recorded();
  const std::vector<Mitigation> records = recorded();
  ASSERT_EQ(records.size(), 2 * kGivenPerTurn);
  for (const Mitigation& record : records) EXPECT_EQ(record.version.counter, record.key.lo + 1);
}

TEST_F(RecordKeeperTest, what_has_ended_while_it_waited_is_not_recorded) {
  make_file(1);
  start();
  keeper_.put(until(now_ + std::chrono::milliseconds(1), 5), now_);
  bring_folder_back();
  run_until_recorded();
  EXPECT_FALSE(keeper_.holds(id_of(5)));
}

}  // namespace
}  // namespace popgate
