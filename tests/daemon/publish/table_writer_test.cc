// SPDX-License-Identifier: Apache-2.0
//
// The table as a file: taken over, refused, handed out.
#include "daemon/publish/table_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::size_t kEntries = 1000;

class TableWriterTest : public testing::Test {
 protected:
  void open(std::size_t entries = kEntries) {
    notes_.clear();
    writer_.reset();
    auto opened = TableWriter::open(path_, entries, 1, notes_);
    ASSERT_TRUE(opened) << opened.error();
    writer_ = *std::move(opened);
  }
  void start() {
    open();
    writer_->reconcile({}, now_);
  }
  [[nodiscard]] Enforcement lasting(std::uint64_t key, microseconds duration) const {
    return {{key, key << 8}, 1, now_ + duration, false, false};
  }
  [[nodiscard]] TableAnswer look_up(const Key& key) const {
    return WorkerView(writer_->read_only_descriptor(), writer_->bytes())->look_up(key, now_);
  }
  [[nodiscard]] double metric(std::string_view name) const {
    double value = -1;
    writer_->visit([&](const Metric& one) {
      if (one.name == name) value = one.value;
    });
    return value;
  }
  /// Overwrites bytes of the file while no daemon has it.
  void damage(std::size_t offset, std::uint32_t value) {
    writer_.reset();
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, &value, sizeof value, static_cast<off_t>(offset)), static_cast<ssize_t>(sizeof value));
    close(fd);
  }
  void expect_refused(const std::string& reason) {
    ASSERT_EQ(notes_.size(), 1U);
    EXPECT_THAT(notes_[0], HasSubstr(reason));
    EXPECT_THAT(notes_[0], HasSubstr(path_ + ".refused"));
    EXPECT_TRUE(std::filesystem::exists(path_ + ".refused"));
    writer_->reconcile({}, now_);
    EXPECT_TRUE(writer_->put(lasting(1, seconds(9)), now_)) << "the fresh table works";
    EXPECT_TRUE(look_up({1, 1 << 8}).live);
  }

  TestFolder folder_;
  std::string path_ = folder_.file("table");
  HostInstant now_ = HostClock::now();
  std::vector<std::string> notes_;
  std::unique_ptr<TableWriter> writer_;
};

TEST_F(TableWriterTest, file_is_for_its_owner_only) {
  start();
  struct stat status = {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), writer_->bytes());
  EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, writer_->bytes()) << "every page is allocated";
}

TEST_F(TableWriterTest, descriptor_for_workers_can_only_be_read) {
  start();
  const int fd = writer_->read_only_descriptor();
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  WorkerView view(fd, writer_->bytes());
  EXPECT_EQ(mprotect(view.address(), writer_->bytes(), PROT_READ | PROT_WRITE), -1);
}

TEST_F(TableWriterTest, readers_that_mapped_the_table_see_what_the_next_daemon_writes) {
  start();
  WorkerView view(writer_->read_only_descriptor(), writer_->bytes());
  start();
  EXPECT_TRUE(writer_->put(lasting(5, seconds(9)), now_));
  EXPECT_TRUE(view->look_up({5, 5 << 8}, now_).live);
}

TEST_F(TableWriterTest, foreign_files_are_put_aside_with_the_reason) {
  start();
  damage(offsetof(TableHeader, version), kTableVersion + 1);
  open();
  expect_refused("version 2, allowed: 1");
}

TEST_F(TableWriterTest, table_of_another_size_is_put_aside) {
  start();
  open(10 * kEntries);
  expect_refused("512 buckets, configured: 8192");
}

TEST_F(TableWriterTest, table_of_another_boot_is_put_aside) {
  start();
  damage(offsetof(TableHeader, boot_id), 0);
  open();
  expect_refused("left by another boot");
}

TEST_F(TableWriterTest, truncated_table_is_put_aside) {
  start();
  writer_.reset();
  std::filesystem::resize_file(path_, table_bytes(512) - 1);
  open();
  expect_refused("not as long as its header says");
}

TEST_F(TableWriterTest, something_else_under_the_name_is_put_aside) {
  std::ofstream(path_) << "short";
  open();
  expect_refused("shorter than a header");
  writer_.reset();
  std::filesystem::remove(path_);
  std::filesystem::remove(path_ + ".refused");
  std::filesystem::create_symlink("/etc/passwd", path_);
  open();
  expect_refused("symbolic links");
}

TEST_F(TableWriterTest, daemon_killed_while_making_the_file_does_not_matter) {
  std::ofstream(path_ + ".new") << "unfinished";
  start();
  EXPECT_TRUE(notes_.empty());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(TableWriterTest, table_that_cannot_be_allocated_is_an_error_and_leaves_nothing) {
  struct rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {64 * 1024, before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto opened = TableWriter::open(path_, 100'000, 1, notes_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error(),
              HasSubstr("no room for the table: File too large (" +
                        std::to_string(table_bytes(bucket_count_for(100'000))) + " bytes are needed, "));
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(TableWriterTest, impossible_capacity_is_refused) {
  for (const std::size_t entries : {std::size_t{0}, kTableEntriesMax + 1}) {
    const auto opened = TableWriter::open(path_, entries, 1, notes_);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error(), HasSubstr("allowed: 1 to 33554432"));
  }
}

TEST_F(TableWriterTest, places_are_twice_the_entries_or_a_little_more) {
  for (const std::size_t entries : {1UL, 16UL, 17UL, 1000UL, 262'144UL, kTableEntriesMax}) {
    const std::size_t places = std::size_t{bucket_count_for(entries)} * kEntriesPerBucket;
    EXPECT_GE(places, 2 * entries);
    EXPECT_LE(places, std::max<std::size_t>(4 * entries, kTableBucketsMin * kEntriesPerBucket));
  }
  EXPECT_EQ(bucket_count_for(262'144), 131'072U);
}

TEST_F(TableWriterTest, old_table_does_not_come_to_life_before_it_is_reconciled) {
  start();
  EXPECT_TRUE(writer_->put(lasting(1, hours(24 * 14)), now_));
  // No daemon for so long that the end has wrapped: read as it stands, it would lie ahead.
  now_ += kUntilWrap - hours(24);
  EXPECT_FALSE(look_up({1, 1 << 8}).live);
  open();
  EXPECT_FALSE(look_up({1, 1 << 8}).live) << "opening alone is no sign of life";
  writer_->reconcile({}, now_);
  EXPECT_FALSE(look_up({1, 1 << 8}).live) << "deleted";
  EXPECT_EQ(metric("popgate_publish_adoption_deleted_total"), 1);
}

TEST_F(TableWriterTest, first_heartbeat_comes_with_reconcile) {
  open();
  EXPECT_EQ(WorkerView(writer_->read_only_descriptor(), writer_->bytes())->heartbeat(), HostInstant{});
  writer_->reconcile({}, now_);
  EXPECT_EQ(WorkerView(writer_->read_only_descriptor(), writer_->bytes())->heartbeat(), now_);
}

TEST_F(TableWriterTest, heartbeat_keeps_entries_in_force) {
  start();
  EXPECT_TRUE(writer_->put(lasting(1, hours(24 * 14)), now_));
  now_ += hours(24 * 13);
  writer_->heartbeat(now_);
  EXPECT_TRUE(writer_->put(lasting(2, hours(24 * 14)), now_));
  now_ += hours(24 * 3);
  EXPECT_TRUE(look_up({2, 2 << 8}).live);
}

TEST_F(TableWriterTest, refused_key_waits_and_gets_in_when_entries_end) {
  open(2);
  writer_->reconcile({}, now_);
  EXPECT_TRUE(writer_->put(lasting(1, seconds(1)), now_));
  EXPECT_TRUE(writer_->put(lasting(2, seconds(60)), now_));
  EXPECT_FALSE(writer_->put(lasting(3, seconds(60)), now_));
  EXPECT_EQ(metric("popgate_publish_refused_total"), 1);
  EXPECT_EQ(metric("popgate_publish_entries_waiting"), 1);
  writer_->sweep(now_);
  EXPECT_FALSE(look_up({3, 3 << 8}).live);
  now_ += seconds(2);
  writer_->sweep(now_);
  EXPECT_TRUE(look_up({3, 3 << 8}).live);
  EXPECT_TRUE(look_up({2, 2 << 8}).live) << "a live one was not evicted for it";
  EXPECT_EQ(metric("popgate_publish_entries_waiting"), 0);
}

TEST_F(TableWriterTest, waiting_key_that_is_lifted_does_not_get_in_later) {
  open(1);
  writer_->reconcile({}, now_);
  EXPECT_TRUE(writer_->put(lasting(1, seconds(1)), now_));
  EXPECT_FALSE(writer_->put(lasting(2, seconds(60)), now_));
  writer_->remove({2, 2 << 8});
  now_ += seconds(2);
  writer_->sweep(now_);
  EXPECT_FALSE(look_up({2, 2 << 8}).live);
}

TEST_F(TableWriterTest, waiting_keys_that_end_meanwhile_are_dropped) {
  open(1);
  writer_->reconcile({}, now_);
  EXPECT_TRUE(writer_->put(lasting(1, seconds(60)), now_));
  EXPECT_FALSE(writer_->put(lasting(2, seconds(1)), now_));
  now_ += seconds(2);
  writer_->sweep(now_);
  EXPECT_EQ(metric("popgate_publish_entries_waiting"), 0);
}

}  // namespace
}  // namespace popgate
