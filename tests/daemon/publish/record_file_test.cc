// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/daemon/publish/test_folder.h"

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr NodeId kNode = 17;
const PopInstant kWall{seconds(1'700'000'000)};

class RecordFileTest : public testing::Test {
 protected:
  void open(std::size_t records_max = 100) {
    file_.reset();
    notes_.clear();
    loaded_.clear();
    auto opened = RecordFile::open({path_, records_max, kNode}, notes_);
    ASSERT_TRUE(opened) << opened.error();
    file_ = *std::move(opened);
    const auto load = file_->load([this](Mitigation m) { loaded_[m.key.hi] = m; }, now_, kWall);
    ASSERT_TRUE(load) << load.error();
    load_ = *load;
  }
  [[nodiscard]] Mitigation mitigation(std::uint64_t key, microseconds lasting = minutes(10)) const {
    Mitigation m;
    m.key = {key, key};
    m.version = {0, key, kNode, 1};
    m.until = now_ + lasting;
    m.decided_at = kWall;
    m.until_wall = kWall + lasting;
    return m;
  }
  [[nodiscard]] EntryId id(std::uint64_t key) const { return {{key, key}, EntryKind::kAutomatic}; }
  void overwrite(off_t offset, const std::string& bytes) {
    file_.reset();
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), offset), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }
  [[nodiscard]] double metric(std::string_view name) const {
    double value = -1;
    file_->visit([&](const Metric& one) {
      if (one.name == name) value = one.value;
    });
    return value;
  }

  TestFolder folder_;
  std::string path_ = folder_.file("records");
  HostInstant now_ = HostClock::now();
  std::vector<std::string> notes_;
  std::map<std::uint64_t, Mitigation> loaded_;
  RecordFile::Load load_;
  std::unique_ptr<RecordFile> file_;
};

TEST_F(RecordFileTest, records_outlive_their_daemon) {
  open();
  EXPECT_FALSE(load_.found);
  for (std::uint64_t key = 1; key <= 20; ++key) ASSERT_TRUE(file_->put(mitigation(key)));
  open();
  EXPECT_TRUE(load_.found);
  EXPECT_EQ(load_.records, 20U);
  EXPECT_EQ(load_.damaged, 0U);
  EXPECT_EQ(loaded_.size(), 20U);
  EXPECT_EQ(loaded_[7].version, mitigation(7).version);
  EXPECT_EQ(loaded_[7].until, mitigation(7).until);
}

TEST_F(RecordFileTest, later_version_replaces_the_record_in_its_place) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  const auto bytes = std::filesystem::file_size(path_);
  Mitigation later = mitigation(1, minutes(20));
  later.version.counter = 99;
  ASSERT_TRUE(file_->put(later));
  EXPECT_EQ(std::filesystem::file_size(path_), bytes);
  open();
  EXPECT_EQ(load_.records, 1U);
  EXPECT_EQ(loaded_[1].version.counter, 99U);
}

TEST_F(RecordFileTest, unchanged_record_is_not_written_again) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  ASSERT_TRUE(file_->put(mitigation(1)));
  EXPECT_EQ(metric("popgate_publish_records_written_total"), 1);
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  EXPECT_EQ(metric("popgate_publish_records_written_total"), 0);
}

TEST_F(RecordFileTest, shorter_end_alone_is_written) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1, minutes(10))));
  ASSERT_TRUE(file_->put(mitigation(1, minutes(5))));
  open();
  EXPECT_EQ(loaded_[1].until, now_ + minutes(5));
}

TEST_F(RecordFileTest, erased_record_is_gone_and_its_place_used_again) {
  open();
  for (std::uint64_t key = 1; key <= 3; ++key) ASSERT_TRUE(file_->put(mitigation(key)));
  const auto bytes = std::filesystem::file_size(path_);
  ASSERT_TRUE(file_->erase(id(2)));
  ASSERT_TRUE(file_->erase(id(2))) << "twice is once";
  ASSERT_TRUE(file_->put(mitigation(4)));
  EXPECT_EQ(std::filesystem::file_size(path_), bytes);
  open();
  EXPECT_EQ(load_.records, 3U);
  EXPECT_FALSE(loaded_.contains(2));
}

TEST_F(RecordFileTest, damaged_record_is_skipped_counted_and_its_place_used_again) {
  open();
  for (std::uint64_t key = 1; key <= 3; ++key) ASSERT_TRUE(file_->put(mitigation(key)));
  const auto bytes = std::filesystem::file_size(path_);
  overwrite(kRecordHeaderBytes + 1 * kRecordBytes + 100, "damage");
  open();
  EXPECT_EQ(load_.damaged, 1U);
  EXPECT_EQ(load_.records, 2U);
  EXPECT_EQ(metric("popgate_publish_records_damaged_total"), 1);
  ASSERT_TRUE(file_->put(mitigation(9)));
  EXPECT_EQ(std::filesystem::file_size(path_), bytes);
  open();
  EXPECT_EQ(load_.damaged, 0U);
}

TEST_F(RecordFileTest, half_a_record_at_the_end_is_ignored) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  ASSERT_TRUE(file_->put(mitigation(2)));
  file_.reset();
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  open();
  EXPECT_EQ(load_.records, 1U);
  ASSERT_TRUE(file_->put(mitigation(3)));
  open();
  EXPECT_EQ(load_.records, 2U);
}

TEST_F(RecordFileTest, full_file_refuses_new_records_and_still_changes_old_ones) {
  open(2);
  ASSERT_TRUE(file_->put(mitigation(1)));
  ASSERT_TRUE(file_->put(mitigation(2)));
  const Status third = file_->put(mitigation(3));
  ASSERT_FALSE(third);
  EXPECT_THAT(third.error(), HasSubstr("full: 2 records"));
  EXPECT_TRUE(file_->put(mitigation(2, minutes(99))));
  EXPECT_EQ(metric("popgate_publish_records_refused_total"), 1);
}

TEST_F(RecordFileTest, records_go_a_minute_after_their_end) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1, seconds(10))));
  ASSERT_TRUE(file_->put(mitigation(2, hours(1))));
  now_ += seconds(10) + kEndedKept - microseconds(1);
  EXPECT_EQ(file_->sweep(100, now_), 0U);
  now_ += microseconds(1);
  EXPECT_EQ(file_->sweep(100, now_), 1U);
  EXPECT_EQ(file_->records(), 1U);
}

TEST_F(RecordFileTest, records_that_ended_long_ago_are_not_given) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1, seconds(10))));
  now_ += seconds(10) + kEndedKept;
  open();
  EXPECT_TRUE(loaded_.empty());
  open();
  EXPECT_EQ(load_.records, 0U);
}

TEST_F(RecordFileTest, record_of_another_boot_is_converted_once) {
  open();
  Record record{mitigation(1, hours(1)), BootId{9, 9, 9}};
  record.mitigation.until = now_ - hours(3);  // of the other boot's clock
  std::string bytes(kRecordBytes, '\0');
  encode_record(record, std::as_writable_bytes(std::span(bytes)).first<kRecordBytes>());
  overwrite(kRecordHeaderBytes, bytes);
  open();
  EXPECT_EQ(load_.rebooted, 1U);
  EXPECT_EQ(loaded_[1].until, now_ + hours(1));
  open();
  EXPECT_EQ(load_.rebooted, 0U) << "the wall clock has no more say";
  EXPECT_EQ(loaded_[1].until, now_ + hours(1));
}

TEST_F(RecordFileTest, keys_are_listed_once_whatever_they_have) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  Mitigation by_operator = mitigation(1);
  by_operator.space = Space::kOperator;
  ASSERT_TRUE(file_->put(by_operator));
  by_operator.lifted = true;
  ASSERT_TRUE(file_->put(by_operator));
  ASSERT_TRUE(file_->put(mitigation(2)));
  EXPECT_EQ(file_->records(), 4U);
  EXPECT_THAT(file_->keys(), testing::ElementsAre(Key{1, 1}, Key{2, 2}));
}

TEST_F(RecordFileTest, counter_promise_covers_every_decision_and_outlives_them) {
  open();
  for (const std::uint64_t counter : {1U, 5000U, 5001U, 100'000U}) {
    Mitigation m = mitigation(counter, seconds(1));
    ASSERT_TRUE(file_->put(m));
  }
  Mitigation foreign = mitigation(7, seconds(1));
  foreign.version = {0, 1'000'000'000, kNode + 1, 1};
  ASSERT_TRUE(file_->put(foreign));
  now_ += hours(1);
  EXPECT_EQ(file_->sweep(100, now_), 5U) << "no record tells it";
  open();
  EXPECT_TRUE(loaded_.empty());
  EXPECT_GE(load_.counter, 100'000U);
  EXPECT_LE(load_.counter, 100'000U + kCounterStep) << "other nodes' counters are no part of it";
}

TEST_F(RecordFileTest, file_of_another_version_is_put_aside_with_the_reason) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  overwrite(8, std::string("\x07\0\0\0", 4));
  open();
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("version 7, allowed: 1 to 2"));
  EXPECT_FALSE(load_.found);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".refused"));
  EXPECT_TRUE(file_->put(mitigation(2)));
}

// Its checksum is what an earlier release wrote.
TEST_F(RecordFileTest, file_of_version_1_is_read_and_its_records_are_not_labelled) {
  open();
  ASSERT_TRUE(file_->put(mitigation(1)));
  const auto header_of_version_1 = [] {
    struct {
      std::uint64_t magic = 0x3143455254475050;
      std::uint32_t version = 1;
      std::uint32_t record_bytes = kRecordBytes;
      std::uint64_t node = kNode;
      std::uint64_t counter_promised = 77;
      std::uint32_t checksum = 0;
      std::uint32_t reserved = 0;
    } header;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
    header.checksum = static_cast<std::uint32_t>(crc32(crc32(0, nullptr, 0), bytes, 32));
    return std::string(reinterpret_cast<const char*>(&header), sizeof header);
  };
  overwrite(0, header_of_version_1());
  open();
  EXPECT_TRUE(notes_.empty());
  EXPECT_TRUE(load_.found);
  ASSERT_EQ(loaded_.count(1), 1U);
  EXPECT_EQ(loaded_[1].evidence.under, DecidedUnder::kCounters);
}

TEST_F(RecordFileTest, something_else_under_the_name_is_put_aside) {
  std::ofstream(path_) << "# not a record file, but longer than a header is: " << std::string(100, '.');
  open();
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("not a record file"));
}

TEST_F(RecordFileTest, damaged_header_is_put_aside) {
  open();
  overwrite(24, "xx");
  open();
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_THAT(notes_[0], HasSubstr("damaged header"));
}

TEST_F(RecordFileTest, full_disk_is_an_error_and_space_makes_it_work_again) {
  open();
  for (std::uint64_t key = 1; key <= 8; ++key) ASSERT_TRUE(file_->put(mitigation(key)));
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit full = {std::filesystem::file_size(path_), before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const Status failed = file_->put(mitigation(9));
  const Status in_place = file_->put(mitigation(3, minutes(77)));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error(), HasSubstr(path_));
  EXPECT_TRUE(in_place);
  EXPECT_EQ(metric("popgate_publish_records_failed_total"), 1);
  EXPECT_TRUE(file_->put(mitigation(9)));
  open();
  EXPECT_EQ(load_.records, 9U);
  EXPECT_EQ(load_.damaged, 0U);
}

TEST_F(RecordFileTest, folder_that_is_not_there_is_an_error) {
  const auto opened = RecordFile::open({folder_.file("missing/records"), 10, kNode}, notes_);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error(), HasSubstr("No such file or directory"));
}

TEST_F(RecordFileTest, file_is_for_its_owner_only) {
  open();
  struct stat status = {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0U);
}

}  // namespace
}  // namespace popgate
