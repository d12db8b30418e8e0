// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/brake_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "tests/daemon/publish/test_folder.h"

namespace popgate {
namespace {

using testing::HasSubstr;

constexpr NodeId kNode = 42;
const PopInstant kWall{std::chrono::seconds(1'700'000'000)};

void ignore(const Brakes::Change& /*change*/) {}

class BrakeFileTest : public testing::Test {
 protected:
  BrakeFileTest() {
    EXPECT_TRUE(brakes_.order({BrakeSide::kPop, kEveryRule, true, BrakeOrigin::kOperator, "too many calls"}, kWall));
    EXPECT_TRUE(brakes_.order({BrakeSide::kNode, 7, false, BrakeOrigin::kFuse, std::string(256, 'x')}, kWall));
    EXPECT_TRUE(brakes_.order({BrakeSide::kPop, 9, true, BrakeOrigin::kRecovered, ""}, kWall));
  }
  void damage(const std::string& bytes) const { std::ofstream(file_.path(), std::ios::binary) << bytes; }

  TestFolder folder_;
  Brakes brakes_{"a", ignore};
  BrakeFile file_{folder_.file("brakes"), kNode};
};

TEST_F(BrakeFileTest, what_was_written_is_read) {
  ASSERT_TRUE(file_.write(file_.encode(brakes_)));
  std::string note;
  const auto stored = file_.load(note);
  EXPECT_EQ(note, "");
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->stamp, brakes_.stamp());
  Brakes again("a", ignore);
  for (const auto& [side, brake, untold] : stored->registers) again.restore(side, brake, untold);
  for (const BrakeSide side : {BrakeSide::kNode, BrakeSide::kPop}) {
    EXPECT_EQ(again.registers(side), brakes_.registers(side));
  }
}

TEST_F(BrakeFileTest, the_file_is_its_owners_alone_and_nothing_unfinished_stays) {
  ASSERT_TRUE(file_.write(file_.encode(brakes_)));
  struct stat status = {};
  ASSERT_EQ(stat(file_.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(file_.path() + ".new"));
}

TEST_F(BrakeFileTest, no_file_is_no_fault) {
  std::string note;
  EXPECT_FALSE(file_.load(note));
  EXPECT_EQ(note, "");
}

TEST_F(BrakeFileTest, a_file_cut_or_changed_anywhere_is_refused_and_kept_aside) {
  const std::string whole = encode_brakes(brakes_, kNode);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decode_brakes(whole.substr(0, bytes), kNode)) << bytes;
    std::string changed = whole;
    changed[bytes] = static_cast<char>(changed[bytes] ^ 0x20);
    EXPECT_FALSE(decode_brakes(changed, kNode)) << bytes;
  }
  EXPECT_FALSE(decode_brakes(whole + "x", kNode));
  damage(whole.substr(0, 50));
  std::string note;
  EXPECT_FALSE(file_.load(note));
  EXPECT_THAT(note, HasSubstr("renamed to " + file_.path() + ".refused"));
  EXPECT_TRUE(std::filesystem::exists(file_.path() + ".refused"));
  EXPECT_FALSE(std::filesystem::exists(file_.path()));
}

TEST_F(BrakeFileTest, more_than_its_head_says_is_refused_though_the_checksum_is_right) {
  std::string bytes = encode_brakes(brakes_, kNode);
  bytes.replace(bytes.size() - 4, 4, "x");
  const auto sum = static_cast<std::uint32_t>(
      crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(sum >> shift & 0xff));
  const auto stored = decode_brakes(bytes, kNode);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error(), "not as long as its head says");
}

TEST_F(BrakeFileTest, another_nodes_file_is_refused) {
  damage(encode_brakes(brakes_, kNode + 1));
  std::string note;
  EXPECT_FALSE(file_.load(note));
  EXPECT_THAT(note, HasSubstr("another node's"));
}

TEST_F(BrakeFileTest, another_version_is_refused_by_name) {
  std::string bytes = encode_brakes(brakes_, kNode);
  bytes[8] = 2;
  const auto stored = decode_brakes(bytes, kNode);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error(), "version: found 2, allowed: 1");
}

TEST_F(BrakeFileTest, what_is_no_plain_file_is_refused_without_waiting) {
  ASSERT_EQ(mkfifo(file_.path().c_str(), 0600), 0);
  std::string note;
  EXPECT_FALSE(file_.load(note));
  EXPECT_THAT(note, HasSubstr("not a regular file"));
}

TEST_F(BrakeFileTest, a_folder_that_is_not_there_is_an_error_with_its_name) {
  const BrakeFile nowhere(folder_.file("none/brakes"), kNode);
  const Status written = nowhere.write(nowhere.encode(brakes_));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error(), HasSubstr(folder_.file("none/brakes")));
}

TEST_F(BrakeFileTest, what_was_told_to_nobody_is_still_so_when_it_is_read) {
  brakes_.expect_peers();
  ASSERT_TRUE(brakes_.order({BrakeSide::kPop, 11, true, BrakeOrigin::kOperator, "late"}, kWall));
  const auto stored = decode_brakes(file_.encode(brakes_), kNode);
  ASSERT_TRUE(stored);
  Brakes again("a", ignore);
  again.expect_peers();
  for (const auto& [side, brake, untold] : stored->registers) again.restore(side, brake, untold);
  for (const RuleId rule : {kEveryRule, RuleId{9}}) EXPECT_FALSE(again.is_untold(BrakeSide::kPop, rule)) << rule;
  EXPECT_TRUE(again.is_untold(BrakeSide::kPop, 11));
}

// ---- A daemon that was killed while it wrote ----

class UnfinishedBrakeFileTest : public BrakeFileTest {
 protected:
  UnfinishedBrakeFileTest() {
    EXPECT_TRUE(file_.write(file_.encode(brakes_)));
    EXPECT_TRUE(brakes_.order({BrakeSide::kNode, kEveryRule, true, BrakeOrigin::kOperator, "newer"}, kWall));
    newer_ = file_.encode(brakes_);
  }
  void leave_unfinished(const std::string& bytes) const {
    std::ofstream(file_.path() + ".new", std::ios::binary) << bytes;
  }
  [[nodiscard]] bool has_newer() const {
    std::string note;
    const auto stored = file_.load(note);
    EXPECT_EQ(note, "");
    return stored && stored->stamp == brakes_.stamp();
  }
  std::string newer_;
};

TEST_F(UnfinishedBrakeFileTest, whole_one_is_read_and_gets_its_name) {
  leave_unfinished(newer_);
  EXPECT_TRUE(has_newer());
  EXPECT_FALSE(std::filesystem::exists(file_.path() + ".new"));
  EXPECT_TRUE(has_newer()) << "a write that fails must not take it";
}

TEST_F(UnfinishedBrakeFileTest, cut_one_is_ignored_wherever_it_was_cut) {
  for (std::size_t bytes = 0; bytes < newer_.size(); ++bytes) {
    leave_unfinished(newer_.substr(0, bytes));
    EXPECT_FALSE(has_newer()) << bytes;
  }
}

TEST_F(UnfinishedBrakeFileTest, one_that_is_older_than_the_file_is_ignored) {
  const std::string older = encode_brakes(Brakes("a", ignore), kNode);
  ASSERT_TRUE(file_.write(newer_));
  leave_unfinished(older);
  EXPECT_TRUE(has_newer());
}

TEST_F(UnfinishedBrakeFileTest, one_beside_a_damaged_file_is_read_and_the_damage_is_told) {
  damage("rubbish");
  leave_unfinished(newer_);
  std::string note;
  const auto stored = file_.load(note);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->stamp, brakes_.stamp());
  EXPECT_THAT(note, HasSubstr("renamed to " + file_.path() + ".refused"));
}

TEST_F(BrakeFileTest, the_most_registers_with_the_longest_texts_fit) {
  Brakes full(std::string(kBrakeNameBytesMax, 'n'), ignore);
  for (std::uint64_t rule = 0; rule <= kBrakesMax; ++rule) {
    for (const BrakeSide side : {BrakeSide::kNode, BrakeSide::kPop}) {
      ASSERT_TRUE(full.order({side, rule, true, BrakeOrigin::kOperator, std::string(kReasonBytesMax, 'r')}, kWall));
    }
  }
  ASSERT_TRUE(file_.write(file_.encode(full)));
  std::string note;
  const auto stored = file_.load(note);
  ASSERT_TRUE(stored) << note;
  EXPECT_EQ(stored->registers.size(), 2 * (kBrakesMax + 1));
}

}  // namespace
}  // namespace popgate
