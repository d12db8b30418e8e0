// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/rules_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
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
};

TEST_F(RulesFileTest, descriptor_reads_the_block_and_cannot_be_mapped_writable) {
  const auto file = RulesFile::write(path_, bytes_of("first"));
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(content(file->read_only_descriptor()), "first");
  EXPECT_EQ(file->bytes(), 5U);
  EXPECT_EQ(mmap(nullptr, 5, PROT_READ | PROT_WRITE, MAP_SHARED, file->read_only_descriptor(), 0), MAP_FAILED);
}

TEST_F(RulesFileTest, file_is_the_owners_alone_and_nothing_else_is_left) {
  const auto file = RulesFile::write(path_, bytes_of("first"));
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(RulesFileTest, next_revision_leaves_the_last_one_whole_for_those_that_map_it) {
  const auto first = RulesFile::write(path_, bytes_of("first"));
  const auto second = RulesFile::write(path_, bytes_of("second"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(content(first->read_only_descriptor()), "first");
  EXPECT_EQ(content(second->read_only_descriptor()), "second");
}

TEST_F(RulesFileTest, what_a_killed_writer_left_does_not_stand_in_the_way) {
  const int left = open((path_ + ".new").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(left, 0);
  ASSERT_EQ(write(left, "half a block", 12), 12);
  close(left);
  const auto file = RulesFile::write(path_, bytes_of("whole"));
  ASSERT_TRUE(file.ok()) << file.error();
  EXPECT_EQ(content(file->read_only_descriptor()), "whole");
}

TEST_F(RulesFileTest, error_names_the_path_and_the_reason) {
  const auto file = RulesFile::write("/dev/shm/popgate-no-such-folder/rules", bytes_of("x"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error(),
            "/dev/shm/popgate-no-such-folder/rules.new: cannot create the file: No such file or directory");
}

}  // namespace
}  // namespace popgate
