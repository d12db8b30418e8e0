// SPDX-License-Identifier: Apache-2.0
//
// The bytes of the ledger file: what one daemon leaves to the next about every hit and every ring.
//
// Layout: LedgerHeader (one page), LedgerJournal, kRingAccountsMax × RingAccountRecord, then row_count × LedgerRecord.
// The rows come last because they grow: a ledger begins with kLedgerRowsFirst rows and doubles, so that a daemon with
// ten rules does not take the 64 MiB that a million would.
//
// A daemon that is killed loses nothing but its own thoughts: the stores it made before, in program order, are in the
// page cache for the next one. So no checksum guards the rows; order does. Whatever changes more than one word goes
// through the journal:
//     write ring, updates and update_count; committed = 1 (release)      killed before: nothing happened
//     store every new value in its row and in the ring's account         killed here: the next daemon stores them again
//     committed = 0 (release)
// Values are absolute, so storing them twice is storing them once.
// Threads: one writer, the daemon that holds the file's lock; who reads meanwhile must expect a step half done.
// Invariants: 1. A row's other columns never add up to more than kDrained (kRingDropped apart).
//             2. An account of a ring is never ahead of what the rows have taken from that ring, nor behind.
// Limits: kJournalUpdatesMax columns change in one step; kRingAccountsMax rings are remembered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "daemon/collect/ledger.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {

inline constexpr std::uint64_t kLedgerMagic = 0x31474c4547445047;  // "PGDGELG1", little-endian
inline constexpr std::uint32_t kLedgerVersion = 1;
inline constexpr std::uint32_t kLedgerRowsFirst = 1024;
inline constexpr std::size_t kJournalUpdatesMax = 1024;  // one per hit of the largest batch, each of another rule
inline constexpr std::size_t kLedgerColumns = static_cast<std::size_t>(LedgerColumn::kCount);

struct LedgerHeader {
  std::uint64_t magic;  // stored last when a file is made: without it the file is as good as empty
  std::uint32_t version;
  std::uint32_t record_bytes;
  std::uint32_t ring_accounts;
  std::uint32_t journal_updates;
  std::uint64_t checksum;                // over the four fields above
  std::atomic<std::uint32_t> row_count;  // stored after the file has grown
  std::atomic<std::uint32_t> daemons;    // how many have opened it
};
inline constexpr std::size_t kLedgerHeaderBytes = 4096;
static_assert(sizeof(LedgerHeader) <= kLedgerHeaderBytes);

/// What the rows have taken from one ring.
struct RingAccountRecord {
  std::atomic<std::uint32_t> used;  // stored last when an account begins, first when it ends
  std::uint32_t seen_by;            // the latest daemon (by `daemons`) that had the ring attached
  RingId ring;
  std::uint64_t tail;         // hits before it are in the rows
  std::uint64_t fold_count;   // the latest fold: dropped hits of `fold_rule` that are in the rows
  std::uint32_t fold_rule;    // kNoRule: none yet
  std::uint32_t reserved[5];  // one cache line
};
static_assert(sizeof(RingAccountRecord) == 64);

struct JournalUpdate {
  std::uint32_t rule;
  std::uint32_t column;
  std::uint64_t value;  // absolute
};

struct LedgerJournal {
  std::atomic<std::uint64_t> committed;
  std::uint32_t account;  // index of the ring's account
  std::uint32_t update_count;
  RingStep step;
  JournalUpdate updates[kJournalUpdatesMax];
};

struct LedgerRecord {
  std::atomic<std::uint64_t> rule;  // RuleId; 0: free
  std::atomic<std::uint64_t> columns[kLedgerColumns];
};
static_assert(sizeof(LedgerRecord) == 64);

inline constexpr std::size_t kLedgerJournalOffset = kLedgerHeaderBytes;
inline constexpr std::size_t kLedgerJournalBytes = (sizeof(LedgerJournal) + 4095) / 4096 * 4096;
inline constexpr std::size_t kLedgerAccountsOffset = kLedgerJournalOffset + kLedgerJournalBytes;
inline constexpr std::size_t kLedgerRowsOffset = kLedgerAccountsOffset + kRingAccountsMax * sizeof(RingAccountRecord);
constexpr std::size_t ledger_bytes(std::uint32_t row_count) {
  return kLedgerRowsOffset + std::size_t{row_count} * sizeof(LedgerRecord);
}

}  // namespace popgate
