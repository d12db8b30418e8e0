// SPDX-License-Identifier: Apache-2.0
//
// A file is replaced while the process is killed or the power goes between any two steps, on a disk that keeps of what
// was not synced whatever it likes.
#include "daemon/durable_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace popgate {
namespace {

const std::string kPath = "/state/brakes";
const std::string kOld = "old bytes";
const std::string kNew = "the new bytes";

/// Keeps what was asked for, what is on its platters, and dies after a number of steps.
class DyingDisk final : public DiskSteps {
 public:
  explicit DyingDisk(int steps) : steps_left_(steps) {}

  Status write(const std::string& path, std::string_view bytes) override {
    if (is_dead()) return Error{"dead"};
    names_[path] = static_cast<int>(files_.size());
    files_.push_back({std::string(bytes), false});
    return {};
  }
  Status sync(const std::string& path) override {
    if (is_dead()) return Error{"dead"};
    files_.at(static_cast<std::size_t>(names_.at(path))).synced = true;
    return {};
  }
  Status rename(const std::string& from, const std::string& to) override {
    if (is_dead()) return Error{"dead"};
    names_[to] = names_.at(from);
    names_.erase(from);
    return {};
  }
  Status sync_folder(const std::string& folder) override {
    if (is_dead()) return Error{"dead"};
    EXPECT_EQ(folder, "/state");
    names_on_disk_ = names_;
    return {};
  }
  void format(const std::string& path, const std::string& bytes) {
    files_ = {{bytes, true}};
    names_ = names_on_disk_ = {{path, 0}};
  }

  /// What `path` may hold when only the process died.
  [[nodiscard]] std::optional<std::string> after_kill(const std::string& path) const {
    const auto found = names_.find(path);
    if (found == names_.end()) return std::nullopt;
    return files_.at(static_cast<std::size_t>(found->second)).bytes;
  }
  /// All that it may hold when the power went: each name as synced or as it was last; unsynced bytes as they were, cut,
  /// or gone.
  [[nodiscard]] std::set<std::string> after_power_loss(const std::string& path) const {
    std::set<std::string> possible;
    for (const auto* names : {&names_, &names_on_disk_}) {
      const auto found = names->find(path);
      if (found == names->end()) continue;
      const File& file = files_.at(static_cast<std::size_t>(found->second));
      possible.insert(file.bytes);
      if (!file.synced) possible.insert({"", file.bytes.substr(0, file.bytes.size() / 2)});
    }
    return possible;
  }

 private:
  struct File {
    std::string bytes;
    bool synced;
  };
  bool is_dead() { return steps_left_-- <= 0; }

  int steps_left_;
  std::vector<File> files_;
  std::map<std::string, int> names_;
  std::map<std::string, int> names_on_disk_;
};

DyingDisk after_steps(int steps) {
  DyingDisk disk(steps);
  disk.format(kPath, kOld);
  const Status replaced = replace_file(disk, kPath, kNew);
  EXPECT_EQ(replaced.ok(), steps >= 4) << steps;
  return disk;
}

TEST(DurableFile, a_kill_after_any_step_leaves_the_old_or_the_new_bytes_and_the_new_ones_can_be_found) {
  for (int steps = 0; steps <= 4; ++steps) {
    const DyingDisk disk = after_steps(steps);
    EXPECT_EQ(disk.after_kill(kPath), steps < 3 ? kOld : kNew) << steps;
    const auto unfinished = disk.after_kill(unfinished_name(kPath));
    EXPECT_EQ(unfinished, steps == 1 || steps == 2 ? std::optional(kNew) : std::nullopt) << steps;
  }
}

TEST(DurableFile, a_loss_of_power_after_any_step_leaves_the_old_or_the_new_bytes_whole) {
  using Contents = std::set<std::string>;
  for (int steps = 0; steps < 3; ++steps) EXPECT_EQ(after_steps(steps).after_power_loss(kPath), Contents{kOld});
  EXPECT_EQ(after_steps(3).after_power_loss(kPath), (Contents{kOld, kNew}));
  EXPECT_EQ(after_steps(4).after_power_loss(kPath), Contents{kNew});
}

TEST(DurableFile, what_a_killed_process_had_written_can_be_finished) {
  DyingDisk disk(4);
  disk.format(kPath, kOld);
  ASSERT_TRUE(disk.write(unfinished_name(kPath), kNew));
  ASSERT_TRUE(finish_replacing(disk, kPath));
  EXPECT_EQ(disk.after_power_loss(kPath), std::set<std::string>{kNew});
}

// ---- On the system's disk ----

class SystemDiskTest : public testing::Test {
 protected:
  SystemDiskTest() {
    std::string pattern = "/dev/shm/popgate-durable-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SystemDiskTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/file"; }
  [[nodiscard]] std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }
  std::string folder_;
  SystemDisk disk_;
};

TEST_F(SystemDiskTest, a_file_is_made_and_replaced_and_only_its_owners) {
  ASSERT_TRUE(replace_file(disk_, path(), kNew));
  ASSERT_TRUE(replace_file(disk_, path(), kOld)) << "a shorter one";
  EXPECT_EQ(content(), kOld);
  EXPECT_EQ(std::filesystem::status(path()).permissions(), std::filesystem::perms(0600));
  EXPECT_FALSE(std::filesystem::exists(unfinished_name(path())));
}

TEST_F(SystemDiskTest, an_error_names_the_file_and_leaves_the_old_one) {
  ASSERT_TRUE(replace_file(disk_, path(), kOld));
  std::filesystem::create_directory(unfinished_name(path()));  // in the way, also of root
  const Status replaced = replace_file(disk_, path(), kNew);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error(), unfinished_name(path()) + ": cannot create: Is a directory");
  EXPECT_EQ(content(), kOld);
}

TEST_F(SystemDiskTest, a_link_in_the_place_of_the_unfinished_file_is_not_followed) {
  std::ofstream(folder_ + "/precious") << kOld;
  std::filesystem::create_symlink(folder_ + "/precious", unfinished_name(path()));
  EXPECT_FALSE(replace_file(disk_, path(), kNew));
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/precious"), kOld.size());
}

}  // namespace
}  // namespace popgate
