// SPDX-License-Identifier: Apache-2.0
#include "libclient/check/table_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "libclient/check/table_search.h"
#include "tests/libclient/check/table_image.h"

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

HostInstant at(microseconds t) { return HostInstant(t); }

const Key kKey{0x10, 0xabcdef0123456789};  // home bucket 0 of 8 or 16
constexpr HostInstant kNow{seconds(1000)};
constexpr HostInstant kEnd{seconds(1010)};  // 63,125 steps of 16 ms

std::uint64_t tag_word(const Key& key, std::uint64_t gen) { return pack_tag_word(tag_of(key), gen, 0); }
std::uint64_t value_word(HostInstant until, std::uint64_t gen, RuleNumber rule = 7) {
  return pack_value_word({until_steps(until), 0, rule, 0}, gen);
}

class TableReaderTest : public testing::Test {
 protected:
  TableReaderTest() { EXPECT_TRUE(reader_.open(image_.bytes(), reason_)) << reason_; }

  TableImage image_{8, kNow};
  TableReader reader_;
  const char* reason_ = "";
};

TEST_F(TableReaderTest, entry_reads_as_the_documented_bits) {
  // T: tag 56 | gen 6 | reserved | overflow.  V: until 28 | admit 8 | rule 20 | flags 2 | gen 6.
  const std::uint64_t tag = 0xabcdef01234567ULL << 8 | 5ULL << 2;
  const std::uint64_t value = 63125ULL << 36 | 200ULL << 28 | 0xfffffULL << 8 | 3ULL << 6 | 5ULL;
  image_.set_entry(0, 2, tag, value);
  const TableAnswer answer = reader_.look_up(kKey, kNow);
  EXPECT_TRUE(answer.live);
  EXPECT_EQ(answer.rule, 0xfffffU);
  EXPECT_EQ(answer.admit, 200);
  EXPECT_EQ(answer.flags, kTableFlagLogOnly | kTableFlagOperator);
  EXPECT_EQ(answer.remaining, seconds(10));
  EXPECT_FALSE(reader_.look_up(Key{kKey.hi, kKey.lo + 256}, kNow).live) << "the next tag";
  EXPECT_FALSE(reader_.look_up(Key{kKey.hi + 1, kKey.lo}, kNow).live) << "the next bucket";
}

TEST_F(TableReaderTest, entry_ends_at_its_step_and_not_before) {
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd + microseconds(1), 1));  // rounds up to 1010.016 s
  EXPECT_EQ(reader_.look_up(kKey, kEnd).remaining, milliseconds(16));
  EXPECT_EQ(reader_.look_up(kKey, kEnd + microseconds(15'999)).remaining, microseconds(1));
  EXPECT_TRUE(reader_.look_up(kKey, kEnd + microseconds(15'999)).live);
  EXPECT_FALSE(reader_.look_up(kKey, kEnd + microseconds(16'000)).live);
}

TEST_F(TableReaderTest, half_inserted_entry_is_not_live) {
  image_.set_entry(0, 0, tag_word(kKey, 2), value_word(kEnd, 1));
  EXPECT_FALSE(reader_.look_up(kKey, kNow).live);
}

TEST_F(TableReaderTest, deleted_entry_is_not_live_at_any_time) {
  image_.set_entry(0, 0, tag_word(kKey, 1), pack_value_word({0, 0, 7, 0}, 1));
  for (microseconds t{0}; t < kUntilWrap; t += hours(7)) {
    image_.set_heartbeat(at(t));
    EXPECT_FALSE(reader_.look_up(kKey, at(t)).live) << t.count();
  }
  EXPECT_FALSE(reader_.look_up(kKey, at(kUntilWrap - microseconds(1))).live);
}

TEST_F(TableReaderTest, dead_entry_does_not_hide_a_live_one_with_its_tag) {
  image_.set_entry(0, 0, tag_word(kKey, 1), pack_value_word({0, 0, 1, 0}, 1));
  image_.set_entry(0, 1, tag_word(kKey, 1), value_word(kNow - seconds(1), 1, 2));
  image_.set_entry(0, 3, tag_word(kKey, 9), value_word(kEnd, 9, 3));
  EXPECT_EQ(reader_.look_up(kKey, kNow).rule, 3U);
}

TEST_F(TableReaderTest, spilled_entry_is_found_only_along_overflow_bits) {
  image_.set_entry(2, 1, tag_word(kKey, 1), value_word(kEnd, 1));
  image_.set_overflow(1);
  EXPECT_FALSE(reader_.look_up(kKey, kNow).live);
  image_.set_overflow(0);
  EXPECT_TRUE(reader_.look_up(kKey, kNow).live);
}

TEST(TableReader, look_up_goes_eight_buckets_and_no_further) {
  TableImage image(16, kNow);
  TableReader reader;
  const char* reason = "";
  ASSERT_TRUE(reader.open(image.bytes(), reason)) << reason;
  const Key last_home{15, kKey.lo};  // wraps round to bucket 0
  for (std::size_t bucket = 0; bucket < 16; ++bucket) image.set_overflow(bucket);
  image.set_entry(7, 0, tag_word(last_home, 1), value_word(kEnd, 1));
  EXPECT_FALSE(reader.look_up(last_home, kNow).live) << "the ninth bucket";
  image.set_entry(6, 0, tag_word(last_home, 1), value_word(kEnd, 1));
  EXPECT_TRUE(reader.look_up(last_home, kNow).live) << "the eighth bucket";
}

TEST_F(TableReaderTest, overflow_bit_is_no_part_of_the_tag) {
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd, 1));
  image_.set_overflow(0);
  EXPECT_TRUE(reader_.look_up(kKey, kNow).live);
}

TEST_F(TableReaderTest, until_is_right_on_both_sides_of_its_wrap) {
  const HostInstant wrap = at(kUntilWrap);
  const HostInstant before = wrap - seconds(4);  // a multiple of 16 ms
  const HostInstant after = wrap + seconds(4);
  image_.set_heartbeat(before);
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(after, 1));
  EXPECT_EQ(reader_.look_up(kKey, before).remaining, seconds(8));
  EXPECT_FALSE(reader_.look_up(kKey, after).live);
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(wrap, 1));  // step 0, stored as 1
  EXPECT_EQ(reader_.look_up(kKey, before).remaining, seconds(4) + kUntilStep);
}

TEST_F(TableReaderTest, longest_mitigation_is_live_from_first_to_last_instant) {
  const HostInstant until = kNow + kTableMitigationMax;
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(until, 1));
  EXPECT_TRUE(reader_.look_up(kKey, kNow).live);
  // The daemon is gone since kNow; its blocks still end on time.
  EXPECT_TRUE(reader_.look_up(kKey, until - microseconds(1)).live);
  EXPECT_FALSE(reader_.look_up(kKey, until + kUntilStep).live);
}

TEST_F(TableReaderTest, entry_that_nobody_swept_never_comes_back) {
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd, 1));
  // Unswept for as long as a living daemon may leave it, then the daemon is gone: every hour for half a year.
  image_.set_heartbeat(kEnd + kTableSweepMax);
  for (HostInstant t = kEnd + kUntilStep; t < kEnd + hours(24 * 180); t += hours(1)) {
    ASSERT_FALSE(reader_.look_up(kKey, t).live) << t.time_since_epoch().count();
  }
}

TEST_F(TableReaderTest, entry_further_ahead_than_any_mitigation_is_not_live) {
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kNow + kTableAheadMax + kUntilStep, 1));
  EXPECT_FALSE(reader_.look_up(kKey, kNow).live);
}

TEST_F(TableReaderTest, table_without_a_heartbeat_of_the_last_fifteen_days_counts_as_empty) {
  const HostInstant now = kNow + kTableHeartbeatAgeMax;
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(now + minutes(1), 1));
  EXPECT_TRUE(reader_.look_up(kKey, now).live);
  EXPECT_FALSE(reader_.look_up(kKey, now + microseconds(1)).live);
}

TEST_F(TableReaderTest, heartbeat_of_another_boot_counts_as_none) {
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd, 1));
  image_.set_heartbeat(kNow + kTableHeartbeatAheadMax + microseconds(1));
  EXPECT_FALSE(reader_.look_up(kKey, kNow).live);
  image_.header().heartbeat_us.store(INT64_MIN);
  EXPECT_FALSE(reader_.look_up(kKey, kNow).live);
}

TEST_F(TableReaderTest, no_clock_is_read_unless_an_entry_of_the_key_is_held) {
  struct Words {
    TableImage* image;
    std::uint64_t load(std::size_t word) const { return image->word(word).load(); }
  };
  int clock_reads = 0;
  const auto clock = [&]() -> std::optional<HostInstant> {
    ++clock_reads;
    return kNow;
  };
  image_.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd, 1));
  image_.set_entry(0, 1, tag_word(Key{0, 1 << 8}, 1), pack_value_word({0, 0, 0, 0}, 1));
  EXPECT_FALSE(search_table(Words{&image_}, 8, Key{0, 99 << 8}, clock));
  EXPECT_FALSE(search_table(Words{&image_}, 8, Key{0, 1 << 8}, clock)) << "deleted";
  EXPECT_EQ(clock_reads, 0);
  EXPECT_TRUE(search_table(Words{&image_}, 8, kKey, clock));
  EXPECT_EQ(clock_reads, 1);
}

TEST(TableReader, closed_reader_lets_everything_pass) {
  const TableReader reader;
  EXPECT_FALSE(reader.is_open());
  EXPECT_FALSE(reader.look_up(kKey).live);
  EXPECT_FALSE(reader.look_up(kKey, kNow).live);
}

struct Refusal {
  const char* reason;
  void (*damage)(TableHeader&);
};

TEST(TableReader, damaged_header_is_refused_with_its_reason) {
  const Refusal cases[] = {
      {"not a mitigation table", [](TableHeader& h) { h.magic ^= 1; }},
      {"mitigation table of another version", [](TableHeader& h) { ++h.version; }},
      {"mitigation table with an impossible number of buckets", [](TableHeader& h) { h.bucket_count = 0; }},
      {"mitigation table with an impossible number of buckets", [](TableHeader& h) { h.bucket_count = 4; }},
      {"mitigation table with an impossible number of buckets", [](TableHeader& h) { h.bucket_count = 12; }},
      {"mitigation table with an impossible number of buckets", [](TableHeader& h) { h.bucket_count = 1U << 31; }},
      {"mitigation table is shorter than its header says", [](TableHeader& h) { h.bucket_count = 16; }},
  };
  for (const Refusal& one : cases) {
    TableImage image(8, kNow);
    TableReader reader;
    const char* reason = "";
    ASSERT_TRUE(reader.open(image.bytes(), reason));
    one.damage(image.header());
    EXPECT_FALSE(reader.open(image.bytes(), reason));
    EXPECT_STREQ(reason, one.reason);
    EXPECT_FALSE(reader.is_open()) << "a refused table must not leave the last one open";
  }
}

TEST(TableReader, short_or_misaligned_bytes_are_refused) {
  TableImage image(8, kNow);
  TableReader reader;
  const char* reason = "";
  EXPECT_FALSE(reader.open({}, reason));
  EXPECT_FALSE(reader.open(image.bytes().first(kTableHeaderBytes - 1), reason));
  EXPECT_FALSE(reader.open(image.bytes().first(kTableHeaderBytes), reason));
  EXPECT_FALSE(reader.open(image.bytes().first(table_bytes(8) - 1), reason));

  TableImage room(16, kNow);
  std::memcpy(room.bytes().data() + 8, image.bytes().data(), image.bytes().size());
  EXPECT_FALSE(reader.open(room.bytes().subspan(8), reason));
  EXPECT_STREQ(reason, "table is not mapped at a multiple of 64 bytes");
}

TEST(TableReader, works_on_a_read_only_mapping) {
  TableImage image(8, kNow);
  image.set_entry(0, 0, tag_word(kKey, 1), value_word(kEnd, 1));
  const int fd = memfd_create("table", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, image.bytes().data(), image.bytes().size()), static_cast<ssize_t>(image.bytes().size()));
  void* mapped = mmap(nullptr, image.bytes().size(), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  ASSERT_NE(mapped, MAP_FAILED);
  TableReader reader;
  const char* reason = "";
  ASSERT_TRUE(reader.open({static_cast<const std::byte*>(mapped), image.bytes().size()}, reason)) << reason;
  EXPECT_TRUE(reader.look_up(kKey, kNow).live);
  munmap(mapped, image.bytes().size());
}

}  // namespace
}  // namespace popgate
