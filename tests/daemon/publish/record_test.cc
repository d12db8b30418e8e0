// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_format.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

namespace popgate {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr BootId kBoot{1, 2, 3};
constexpr BootId kOtherBoot{3, 2, 1};
constexpr HostInstant kNow{hours(100)};
constexpr PopInstant kWall{hours(500'000)};

using Bytes = std::array<std::byte, kRecordBytes>;

Bytes encoded(const Record& record) {
  Bytes bytes;
  bytes.fill(std::byte{0xee});
  encode_record(record, bytes);
  return bytes;
}

Record record_until(HostInstant until, PopInstant until_wall, PopInstant decided_at, const BootId& boot) {
  Record record;
  record.mitigation.until = until;
  record.mitigation.until_wall = until_wall;
  record.mitigation.decided_at = decided_at;
  record.boot = boot;
  return record;
}

void expect_equal(const Mitigation& a, const Mitigation& b) {
  RC_ASSERT(a.space == b.space && a.key == b.key && a.rule == b.rule && a.rule_revision == b.rule_revision);
  RC_ASSERT(a.version == b.version && a.lifted == b.lifted && a.watermark == b.watermark);
  RC_ASSERT(a.until == b.until && a.until_wall == b.until_wall && a.decided_at == b.decided_at);
  RC_ASSERT(a.decided_by == b.decided_by && a.reason == b.reason);
  RC_ASSERT(a.evidence.lo == b.evidence.lo && a.evidence.estimate == b.evidence.estimate);
  RC_ASSERT(a.evidence.hi == b.evidence.hi && a.evidence.limit == b.evidence.limit);
  RC_ASSERT(a.evidence.under == b.evidence.under);
}

RC_GTEST_PROP(Record, reads_as_it_was_written, ()) {
  Record record;
  Mitigation& m = record.mitigation;
  m.space = *rc::gen::element(Space::kAutomatic, Space::kOperator);
  m.key = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
  m.rule = *rc::gen::arbitrary<std::uint64_t>();
  m.rule_revision = *rc::gen::arbitrary<std::uint64_t>();
  m.version = {*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>(),
               *rc::gen::arbitrary<std::uint64_t>(), *rc::gen::arbitrary<std::uint64_t>()};
  m.lifted = *rc::gen::arbitrary<bool>();
  m.watermark = PopInstant(microseconds(*rc::gen::arbitrary<std::int64_t>()));
  m.until = HostInstant(microseconds(*rc::gen::arbitrary<std::int64_t>()));
  m.until_wall = PopInstant(microseconds(*rc::gen::arbitrary<std::int64_t>()));
  m.decided_at = PopInstant(microseconds(*rc::gen::arbitrary<std::int64_t>()));
  m.decided_by = (*rc::gen::arbitrary<std::string>()).substr(0, kRecordNodeBytesMax);
  m.reason = (*rc::gen::arbitrary<std::string>()).substr(0, kRecordReasonBytesMax);
  m.evidence.lo = *rc::gen::arbitrary<std::uint64_t>();
  m.evidence.estimate = *rc::gen::arbitrary<double>();
  if (*rc::gen::arbitrary<bool>()) m.evidence.hi = *rc::gen::arbitrary<std::uint64_t>();
  m.evidence.limit = *rc::gen::arbitrary<std::uint64_t>();
  m.evidence.under = *rc::gen::element(DecidedUnder::kCounters, DecidedUnder::kLocal, DecidedUnder::kClosed);
  record.boot = kBoot;

  const auto back = decode_record(encoded(record));
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->boot == kBoot);
  expect_equal(back->mitigation, m);
}

TEST(Record, any_changed_bit_is_noticed) {
  Record record = record_until(kNow, kWall, kWall, kBoot);
  record.mitigation.decided_by = "node-a";
  record.mitigation.reason = "scraper";
  const Bytes good = encoded(record);
  ASSERT_TRUE(decode_record(good));
  for (std::size_t bit = 0; bit < kRecordBytes * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(decode_record(bad)) << bit;
  }
}

TEST(Record, torn_record_is_noticed_wherever_it_tore) {
  const Bytes old_bytes = encoded(record_until(kNow, kWall, kWall, kBoot));
  Record other = record_until(kNow + hours(1), kWall + hours(1), kWall + hours(2), kBoot);
  other.mitigation.key = {1, 2};
  other.mitigation.reason = std::string(kRecordReasonBytesMax, 'x');
  const Bytes new_bytes = encoded(other);
  for (std::size_t at = 8; at < 480; at += 8) {
    Bytes torn = old_bytes;
    std::copy_n(new_bytes.begin(), at, torn.begin());
    EXPECT_FALSE(decode_record(torn)) << at;
  }
}

TEST(Record, zeros_are_free_and_not_a_record) {
  const Bytes zeros{};
  EXPECT_TRUE(is_free_record(zeros));
  EXPECT_FALSE(decode_record(zeros));
  EXPECT_FALSE(is_free_record(encoded(record_until(kNow, kWall, kWall, kBoot))));
}

TEST(Record, long_texts_are_cut_at_a_character) {
  Record record;
  record.mitigation.decided_by = std::string(kRecordNodeBytesMax + 1, 'n');
  record.mitigation.reason = "x";  // then characters of three bytes: 255 and 3 more do not fit
  for (int i = 0; i < 100; ++i) record.mitigation.reason += "\xe2\x82\xac";
  const auto back = decode_record(encoded(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->mitigation.decided_by, std::string(kRecordNodeBytesMax, 'n'));
  EXPECT_EQ(back->mitigation.reason, record.mitigation.reason.substr(0, 1 + 85 * 3));
}

TEST(Record, estimate_that_is_no_number_is_refused) {
  Record record;
  record.mitigation.evidence.estimate = std::nan("");
  EXPECT_FALSE(decode_record(encoded(record)));
}

TEST(Record, end_of_this_boot_is_kept_as_it_is) {
  const Record record = record_until(kNow + minutes(5), kWall + hours(9), kWall, kBoot);
  EXPECT_EQ(record_end(record, kBoot, kNow, kWall + hours(3)), kNow + minutes(5));
}

TEST(Record, end_of_another_boot_is_told_by_the_wall_clock) {
  const Record record = record_until(kNow + hours(90), kWall + hours(1), kWall, kOtherBoot);
  EXPECT_EQ(record_end(record, kBoot, kNow, kWall + minutes(20)), kNow + minutes(40));
  EXPECT_EQ(record_end(record, kBoot, kNow, kWall + minutes(80)), kNow - minutes(20)) << "ended while it was down";
}

TEST(Record, wall_clock_that_went_back_cannot_lengthen_an_end) {
  const Record record = record_until(kNow, kWall + hours(1), kWall, kOtherBoot);
  EXPECT_EQ(record_end(record, kBoot, kNow, PopInstant{}), kNow + hours(1)) << "as long as it was to last, no longer";
}

RC_GTEST_PROP(Record, end_is_never_further_ahead_than_any_entry_may_be,
              (std::int64_t until, std::int64_t until_wall, std::int64_t decided, std::int64_t wall, bool same_boot)) {
  const Record record = record_until(HostInstant(microseconds(until)), PopInstant(microseconds(until_wall)),
                                     PopInstant(microseconds(decided)), same_boot ? kBoot : kOtherBoot);
  const HostInstant end = record_end(record, kBoot, kNow, PopInstant(microseconds(wall)));
  RC_ASSERT(end <= kNow + kLiftKept);
  RC_ASSERT(end >= kNow - kLiftKept);
}

RC_GTEST_PROP(Record, any_bytes_are_refused_or_read, (std::vector<std::uint8_t> bytes)) {
  Bytes record{};
  for (std::size_t i = 0; !bytes.empty() && i < record.size(); ++i) record[i] = std::byte(bytes[i % bytes.size()]);
  RC_ASSERT(!decode_record(record));
}

}  // namespace
}  // namespace popgate
