// SPDX-License-Identifier: Apache-2.0
#include "daemon/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace popgate {
namespace {

TEST(DiskRoom, says_what_is_needed_and_what_is_free_where_the_file_is_or_would_be) {
  const auto free = std::filesystem::space("/dev/shm").available;
  for (const char* path : {"/dev/shm", "/dev/shm/popgate-not-there"}) {
    const std::string text = room_text(path, 4096);
    ASSERT_TRUE(text.starts_with(" (4096 bytes are needed, ")) << text;
    ASSERT_TRUE(text.ends_with(" are free)")) << text;
    const double said = std::stod(text.substr(text.find(", ") + 2));
    EXPECT_NEAR(said, static_cast<double>(free), 0.2 * static_cast<double>(free)) << "others use it meanwhile";
  }
}

TEST(DiskRoom, without_a_folder_it_says_what_is_needed) {
  EXPECT_EQ(room_text("/popgate-no-such-folder/table", 7), " (7 bytes are needed)");
}

}  // namespace
}  // namespace popgate
