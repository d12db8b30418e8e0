// SPDX-License-Identifier: Apache-2.0
//
// The bytes of the mitigation table and the protocol by which one writer changes them while any number of processes
// read.
//
//     file   : TableHeader (one page; the operator's brakes stand in it), bucket_count buckets
//     bucket : 64 bytes, one cache line: 4 entries of two 64-bit words
//     T      : tag 56 | gen 6 | reserved 1 | overflow 1        overflow is the bucket's, and stands in its first entry
//     V      : until 28 (16 ms steps) | admit 8 | rule 20 | flags 2 | gen 6
//
//     read   : every entry of the home bucket: T (acquire); tag matches: V (acquire), T again; the entry counts if
//              both T agree, gen(T) = gen(V), and until lies ahead. Overflow set: the next bucket, kProbeBucketsMax in
//              all
//     insert : a free entry (until = 0); T = tag | gen(T) + 1; V = ... | gen(T) + 1
//     change : one store of V, same gen
//     delete : one store of V, until 0
//     spill  : overflow is set in every bucket that the key passes over, then the insert; cleared when nothing that
//              lives further on passes over the bucket any more
//
// The generation stands in both words, because a reader takes two loads: without it, a reader that saw the tag of one
// key and then the value of the next tenant of the entry would block the wrong client. The second look at T costs a
// match one load (under 1 ns) and means that not even 64 generations that pass between two loads of a stopped reader
// can fool it. Two 8-byte words and not one of 16: a 16-byte atomic load writes, and so faults on a read-only mapping.
//
// `until` wraps every 49.7 days. It is compared as a signed difference, anything further ahead than any mitigation may
// be counts as ended, and a table whose heartbeat is older than kTableHeartbeatAgeMax counts as empty. So an entry that
// nobody swept stays ended until it is kUntilWrap - kTableAheadMax old (35 days), by which time the table is empty.
//
// Brakes: two places in the header turn blocking off without touching an entry, so that a full table stops to block in
// one store. A reader looks at them only when it has found a live entry; `all_off` lies in the line of the heartbeat,
// which it reads anyway. What they turn off counts as log-only. A rule that stays off is never moved among the slots of
// `rules_off`, so a reader that scans them while others come and go finds it.
//
// Threads: one writer (the process that holds the lock), any number of readers.
// Invariants: 1. A writer that stops between any two stores leaves a table in which every entry that is not being
//                inserted or deleted right now is found, and no key finds another key's entry.
//             2. The writer never moves a live entry.
// Limits: kProbeBucketsMax buckets a look-up; kTableBucketsMax buckets. Daemon and workers share one CLOCK_BOOTTIME
//         (one time namespace). kTableRulesOffMax rules are off by themselves; the writer turns all off beyond that.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "libclient/instant.h"
#include "libclient/key.h"

namespace popgate {

inline constexpr std::uint64_t kTableMagic = 0x314c425447504750;  // "PGPGTBL1", little-endian
inline constexpr std::uint32_t kTableVersion = 1;
inline constexpr std::size_t kTableHeaderBytes = 4096;
inline constexpr std::size_t kEntriesPerBucket = 4;
inline constexpr std::size_t kWordsPerEntry = 2;
inline constexpr std::size_t kWordsPerBucket = kEntriesPerBucket * kWordsPerEntry;
inline constexpr std::size_t kBucketBytes = kWordsPerBucket * sizeof(std::uint64_t);
inline constexpr std::size_t kProbeBucketsMax = 8;
inline constexpr std::uint32_t kTableBucketsMin = kProbeBucketsMax;  // a look-up never comes round to where it began
inline constexpr std::uint32_t kTableBucketsMax = 1U << 24;          // 1 GiB
/// The writer makes twice as many places as it takes entries: half full, a neighbourhood hardly ever is.
inline constexpr std::size_t kTableEntriesMax = std::size_t{kTableBucketsMax} * kEntriesPerBucket / 2;
static_assert(kBucketBytes == 64);

inline constexpr std::uint32_t kTableRulesOffMax = 512;

struct TableHeader {
  std::uint64_t magic;                     // writer, once, before the file gets its name
  std::uint32_t version;                   // writer, once
  std::uint32_t bucket_count;              // writer, once: a power of two
  std::uint8_t boot_id[16];                // writer, once: whose CLOCK_BOOTTIME the table counts in
  std::atomic<std::int64_t> heartbeat_us;  // writer, release; readers, relaxed: HostInstant
  std::atomic<std::uint64_t> incarnation;  // writer; for people: which daemon writes now
  std::atomic<std::uint32_t> all_off;      // writer, release; readers, acquire: not 0: nothing blocks, all is log-only
  std::atomic<std::uint32_t> rules_off_count;  // writer, release, after the slots; readers, acquire: slots to look at
  std::atomic<std::uint64_t> brakes_stamp;     // writer, release, after the words: for the next daemon (brake_words.h)
  std::atomic<std::uint32_t> rules_off[kTableRulesOffMax];  // writer, release: rule number; 0: free. Readers, acquire
};
static_assert(offsetof(TableHeader, all_off) / 64 == offsetof(TableHeader, heartbeat_us) / 64, "one cache line");
static_assert(sizeof(TableHeader) <= kTableHeaderBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::size_t table_bytes(std::uint32_t bucket_count) {
  return kTableHeaderBytes + std::size_t{bucket_count} * kBucketBytes;
}
constexpr std::size_t home_bucket(const Key& key, std::uint32_t bucket_count) {
  return static_cast<std::size_t>(key.hi) & (bucket_count - 1);
}
constexpr std::size_t bucket_word(std::size_t bucket) { return bucket * kWordsPerBucket; }

// --- T ---------------------------------------------------------------------------------------------------------------

inline constexpr unsigned kGenBits = 6;
inline constexpr std::uint64_t kGenMask = (1U << kGenBits) - 1;
inline constexpr std::uint64_t kOverflowBit = 1;
inline constexpr unsigned kTagShift = 8;
inline constexpr unsigned kTagGenShift = 2;

constexpr std::uint64_t tag_of(const Key& key) { return key.lo >> kTagShift; }
constexpr std::uint64_t pack_tag_word(std::uint64_t tag, std::uint64_t gen, std::uint64_t overflow) {
  return tag << kTagShift | (gen & kGenMask) << kTagGenShift | (overflow & kOverflowBit);
}
constexpr std::uint64_t tag_in(std::uint64_t tag_word) { return tag_word >> kTagShift; }
constexpr std::uint64_t gen_in_tag_word(std::uint64_t tag_word) { return tag_word >> kTagGenShift & kGenMask; }

// --- V ---------------------------------------------------------------------------------------------------------------

inline constexpr unsigned kUntilBits = 28;
inline constexpr unsigned kAdmitBits = 8;
inline constexpr unsigned kFlagBits = 2;
static_assert(kUntilBits + kAdmitBits + kRuleNumberBits + kFlagBits + kGenBits == 64);
inline constexpr unsigned kFlagShift = kGenBits;
inline constexpr unsigned kRuleShift = kFlagShift + kFlagBits;
inline constexpr unsigned kAdmitShift = kRuleShift + kRuleNumberBits;
inline constexpr unsigned kUntilShift = kAdmitShift + kAdmitBits;
inline constexpr std::uint64_t kUntilMask = (std::uint64_t{1} << kUntilBits) - 1;

inline constexpr microseconds kUntilStep{16'000};
inline constexpr microseconds kUntilWrap = kUntilStep * (std::int64_t{1} << kUntilBits);
inline constexpr std::chrono::hours kTableMitigationMax{24 * 14};  // the daemon's kMitigationMax
/// A reader may hold an instant that is a little older than the writer's, and `until` is rounded up.
inline constexpr microseconds kTableAheadMax = kTableMitigationMax + std::chrono::hours(1);
/// Long enough that every block of a daemon that is gone ends on time, and not by this bound.
inline constexpr std::chrono::hours kTableHeartbeatAgeMax{24 * 15};
inline constexpr std::chrono::minutes kTableHeartbeatAheadMax{1};  // beyond it the heartbeat is another boot's
/// How long an ended entry may wait for a living daemon's sweep.
inline constexpr std::chrono::hours kTableSweepMax{24};
static_assert(kTableAheadMax < kUntilWrap / 2, "a signed difference tells ahead from behind");
static_assert(kTableHeartbeatAgeMax > kTableMitigationMax);
static_assert(kTableHeartbeatAgeMax + kTableSweepMax < kUntilWrap - kTableAheadMax,
              "an entry that nobody swept cannot look alive before its table counts as empty");

/// An entry's value, unpacked. `until` 0 means a free entry, so an instant whose step is 0 is stored as the next one.
struct TableValue {
  std::uint64_t until = 0;  // kUntilStep since boot, modulo 2^28
  std::uint8_t admit = 0;
  RuleNumber rule = 0;
  std::uint8_t flags = 0;
};

/// Rounded up, so that a block never ends early.
constexpr std::uint64_t until_steps(HostInstant until) {
  const std::int64_t us = until.time_since_epoch().count();
  const auto steps = static_cast<std::uint64_t>((us + kUntilStep.count() - 1) / kUntilStep.count()) & kUntilMask;
  return steps == 0 ? 1 : steps;
}
constexpr std::uint64_t pack_value_word(const TableValue& value, std::uint64_t gen) {
  return value.until << kUntilShift | std::uint64_t{value.admit} << kAdmitShift |
         (std::uint64_t{value.rule} & (kRuleNumbersMax - 1)) << kRuleShift |
         (std::uint64_t{value.flags} & ((1U << kFlagBits) - 1)) << kFlagShift | (gen & kGenMask);
}
constexpr TableValue unpack_value_word(std::uint64_t value_word) {
  return {value_word >> kUntilShift, static_cast<std::uint8_t>(value_word >> kAdmitShift & 0xff),
          static_cast<RuleNumber>(value_word >> kRuleShift & (kRuleNumbersMax - 1)),
          static_cast<std::uint8_t>(value_word >> kFlagShift & ((1U << kFlagBits) - 1))};
}
constexpr std::uint64_t gen_in_value_word(std::uint64_t value_word) { return value_word & kGenMask; }

/// Time from `now` to the end of an entry; 0 or less: it has ended, is free, or lies further ahead than any mitigation.
constexpr microseconds until_remaining(std::uint64_t until, HostInstant now) {
  if (until == 0) return microseconds(0);
  const std::int64_t us = now.time_since_epoch().count();
  const auto now_steps = static_cast<std::uint64_t>(us / kUntilStep.count());
  const std::uint64_t ahead = (until - now_steps) & kUntilMask;
  // Signed: the upper half of the circle lies behind.
  const std::int64_t steps = static_cast<std::int64_t>(ahead << (64 - kUntilBits)) >> (64 - kUntilBits);
  const microseconds remaining = kUntilStep * steps - microseconds(us % kUntilStep.count());
  return remaining > kTableAheadMax ? microseconds(0) : remaining;
}

/// False when no daemon has written for so long that nothing in the table can still be in force.
constexpr bool heartbeat_is_fresh(std::int64_t heartbeat_us, HostInstant now) {
  const auto age = static_cast<std::int64_t>(static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                                             static_cast<std::uint64_t>(heartbeat_us));
  return age <= microseconds(kTableHeartbeatAgeMax).count() && age >= -microseconds(kTableHeartbeatAheadMax).count();
}

}  // namespace popgate
