// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_format.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace popgate {
namespace {

constexpr std::uint32_t kRecordMagic = 0x31434552;  // "REC1"
constexpr std::uint8_t kFlagLifted = 1;
constexpr std::uint8_t kFlagHiKnown = 2;

// The layout; `checksum` is the CRC-32 of everything behind it.
struct Layout {
  std::uint32_t magic;
  std::uint32_t checksum;
  std::uint8_t space;
  std::uint8_t flags;
  std::uint16_t node_bytes;
  std::uint16_t reason_bytes;
  std::uint8_t decided_under;  // 0 in files of version 1
  std::uint8_t reserved;
  std::uint64_t key_hi, key_lo;
  std::uint64_t rule, rule_revision;
  std::uint64_t epoch, counter, node, incarnation;
  std::int64_t watermark_us;
  std::int64_t until_us;  // host clock of `boot`
  std::int64_t until_wall_us;
  std::int64_t decided_at_us;
  std::uint64_t lo, hi, limit;
  double estimate;
  std::uint8_t boot[16];
  char node_name[kRecordNodeBytesMax];
  char reason[kRecordReasonBytesMax];
  std::uint8_t unused[32];
};
static_assert(sizeof(Layout) == kRecordBytes);
static_assert(std::endian::native == std::endian::little, "the file is little-endian");

std::uint32_t checksum_of(ConstRecordBytes bytes) {
  constexpr std::size_t kFrom = offsetof(Layout, space);
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data()) + kFrom;
  return static_cast<std::uint32_t>(crc32(crc32(0, nullptr, 0), data, kRecordBytes - kFrom));
}

// As many whole UTF-8 characters as fit.
std::size_t bytes_that_fit(const std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  std::size_t bytes = bytes_max;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return bytes;
}

template <std::size_t kBytes>
std::uint16_t put_text(const std::string& text, char (&out)[kBytes]) {
  const std::size_t bytes = bytes_that_fit(text, kBytes);
  std::memcpy(out, text.data(), bytes);
  return static_cast<std::uint16_t>(bytes);
}

template <typename Instant>
std::int64_t count(Instant t) {
  return t.time_since_epoch().count();
}

bool is_possible(const Layout& in) {
  return in.space <= static_cast<std::uint8_t>(Space::kOperator) && in.node_bytes <= kRecordNodeBytesMax &&
         in.reason_bytes <= kRecordReasonBytesMax && in.decided_under < kDecidedUnders && std::isfinite(in.estimate);
}

}  // namespace

void encode_record(const Record& record, RecordBytes out) {
  const Mitigation& m = record.mitigation;
  Layout to{};
  to.magic = kRecordMagic;
  to.space = static_cast<std::uint8_t>(m.space);
  to.flags = static_cast<std::uint8_t>((m.lifted ? kFlagLifted : 0) | (m.evidence.hi ? kFlagHiKnown : 0));
  to.decided_under = static_cast<std::uint8_t>(m.evidence.under);
  to.key_hi = m.key.hi;
  to.key_lo = m.key.lo;
  to.rule = m.rule;
  to.rule_revision = m.rule_revision;
  to.epoch = m.version.epoch;
  to.counter = m.version.counter;
  to.node = m.version.node;
  to.incarnation = m.version.incarnation;
  to.watermark_us = count(m.watermark);
  to.until_us = count(m.until);
  to.until_wall_us = count(m.until_wall);
  to.decided_at_us = count(m.decided_at);
  to.lo = m.evidence.lo;
  to.hi = m.evidence.hi.value_or(0);
  to.limit = m.evidence.limit;
  to.estimate = m.evidence.estimate;
  std::copy(record.boot.begin(), record.boot.end(), to.boot);
  to.node_bytes = put_text(m.decided_by, to.node_name);
  to.reason_bytes = put_text(m.reason, to.reason);
  std::memcpy(out.data(), &to, sizeof to);
  to.checksum = checksum_of(out);
  std::memcpy(out.data(), &to, sizeof to);
}

std::optional<Record> decode_record(ConstRecordBytes bytes) {
  Layout in;
  std::memcpy(&in, bytes.data(), sizeof in);
  if (in.magic != kRecordMagic || in.checksum != checksum_of(bytes) || !is_possible(in)) return std::nullopt;
  Record record;
  Mitigation& m = record.mitigation;
  m.space = static_cast<Space>(in.space);
  m.key = {in.key_hi, in.key_lo};
  m.rule = in.rule;
  m.rule_revision = in.rule_revision;
  m.version = {in.epoch, in.counter, in.node, in.incarnation};
  m.lifted = (in.flags & kFlagLifted) != 0;
  m.watermark = PopInstant(microseconds(in.watermark_us));
  m.until = HostInstant(microseconds(in.until_us));
  m.until_wall = PopInstant(microseconds(in.until_wall_us));
  m.decided_at = PopInstant(microseconds(in.decided_at_us));
  m.evidence.lo = in.lo;
  m.evidence.estimate = in.estimate;
  if ((in.flags & kFlagHiKnown) != 0) m.evidence.hi = in.hi;
  m.evidence.limit = in.limit;
  m.evidence.under = static_cast<DecidedUnder>(in.decided_under);
  std::copy(std::begin(in.boot), std::end(in.boot), record.boot.begin());
  m.decided_by.assign(in.node_name, in.node_bytes);
  m.reason.assign(in.reason, in.reason_bytes);
  return record;
}

bool is_free_record(ConstRecordBytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

HostInstant record_end(const Record& record, const BootId& boot, HostInstant now, PopInstant wall) {
  const Mitigation& m = record.mitigation;
  const microseconds longest = kLiftKept;
  // By subtraction of unsigned numbers: the instants may be anything that a file can hold.
  const auto difference = [](std::int64_t a, std::int64_t b) {
    return microseconds(static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)));
  };
  if (record.boot == boot) return now + std::clamp(difference(count(m.until), count(now)), -longest, longest);
  const microseconds whole = std::clamp(difference(count(m.until_wall), count(m.decided_at)), microseconds(0), longest);
  return now + std::clamp(difference(count(m.until_wall), count(wall)), -longest, whole);
}

}  // namespace popgate
