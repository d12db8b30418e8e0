// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/rules_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace popgate {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string content(int descriptor) {
  char buffer[64];
  const ssize_t bytes = pread(descriptor, buffer, sizeof buffer, 0);
  return {buffer, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

class RulesFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/dev/shm/popgate-rules.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/rules";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
  std::string path_;
  std::string note_;
};

TEST_F(RulesFileTest, descriptor_reads_the_block_and_cannot_be_mapped_writable) {
  const auto file = RulesFile::write(path_, bytes_of("first"), note_);
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(content(file->read_only_descriptor()), "first");
  EXPECT_EQ(file->bytes(), 5U);
  EXPECT_EQ(mmap(nullptr, 5, PROT_READ | PROT_WRITE, MAP_SHARED, file->read_only_descriptor(), 0), MAP_FAILED);
}

TEST_F(RulesFileTest, file_is_the_owners_alone_and_nothing_else_is_left) {
  const auto file = RulesFile::write(path_, bytes_of("first"), note_);
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(RulesFileTest, next_revision_leaves_the_last_one_whole_for_those_that_map_it) {
  const auto first = RulesFile::write(path_, bytes_of("first"), note_);
  const auto second = RulesFile::write(path_, bytes_of("second"), note_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(content(first->read_only_descriptor()), "first");
  EXPECT_EQ(content(second->read_only_descriptor()), "second");
}

TEST_F(RulesFileTest, what_a_killed_writer_left_does_not_stand_in_the_way) {
  const int left = open((path_ + ".new").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(left, 0);
  ASSERT_EQ(write(left, "half a block", 12), 12);
  close(left);
  const auto file = RulesFile::write(path_, bytes_of("whole"), note_);
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(note_, "");
  EXPECT_EQ(content(file->read_only_descriptor()), "whole");
}

TEST_F(RulesFileTest, without_room_the_rules_are_in_memory_where_nobody_can_change_them) {
  const auto file = RulesFile::write("/dev/shm/popgate-no-such-folder/rules", bytes_of("x"), note_);
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(note_,
            "/dev/shm/popgate-no-such-folder/rules.new: cannot create the file: No such file or directory; workers get "
            "the rules from memory instead");
  const int descriptor = file->read_only_descriptor();
  EXPECT_EQ(content(descriptor), "x");
  EXPECT_EQ(file->bytes(), 1U);
  EXPECT_EQ(write(descriptor, "y", 1), -1);
  EXPECT_EQ(mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), MAP_FAILED);
  struct stat status {};
  ASSERT_EQ(fstat(descriptor, &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  // Who may open it again, as this test's user may, can neither write nor cut it.
  const int again = open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(again, 0);
  EXPECT_EQ(write(again, "y", 1), -1);
  EXPECT_EQ(ftruncate(again, 0), -1);
  EXPECT_EQ(mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
  close(again);
}

TEST_F(RulesFileTest, without_room_what_stood_there_still_stands) {
  const auto first = RulesFile::write(path_, bytes_of("first"), note_);
  EXPECT_EQ(note_, "");
  std::filesystem::create_directory(path_ + ".new");  // in the way, also of root
  const auto second = RulesFile::write(path_, bytes_of("second"), note_);
  EXPECT_NE(note_, "");
  std::ifstream stands(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stands), {}), "first");
  EXPECT_EQ(content(second->read_only_descriptor()), "second");
}

}  // namespace
}  // namespace popgate
