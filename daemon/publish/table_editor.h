// SPDX-License-Identifier: Apache-2.0
//
// The write side of the table's protocol (table_format.h): inserts, changes and deletes entries so that readers, who
// look at any moment, and the next writer, who may find the table after any store, see nothing wrong.
//
// The table holds 56 bits of a key, which do not tell where the key's home is. So the editor keeps each entry's whole
// key beside it (32 bytes an entry, in this process), and a table that an earlier writer left is adopted by comparing
// it with what ought to be in it: what cannot be explained is deleted.
//
// Threads: one.
// Invariants: 1. A live entry is never moved and never evicted.
//             2. passing_[b] is the number of keys that live beyond bucket b and whose way leads over it; the bucket's
//                overflow bit is set whenever it is not 0.
// Limits: entries_max entries, and 1/kOperatorReserve more for operators' blocks, so that a flood cannot keep an
//         operator from acting; kProbeBucketsMax buckets from home. A key that finds no room is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/mitigate/mitigation.h"
#include "daemon/publish/table_memory.h"
#include "libclient/check/table_format.h"

namespace popgate {

enum class PutOutcome : std::uint8_t {
  kInserted,
  kChanged,
  kUnchanged,
  kEnded,    // its end has come: nothing is in the table for the key
  kRefused,  // no room within kProbeBucketsMax buckets, or entries_max reached
};

struct Adoption {
  std::size_t kept = 0;      // entries that were found as they should be, or with another value and corrected
  std::size_t inserted = 0;  // wanted and not found
  std::size_t deleted = 0;   // found and not wanted
  std::vector<Enforcement> refused;
};

class TableEditor {
 public:
  /// Takes the words as they are; adopt() comes first, also for a table that is all zeros.
  TableEditor(TableMemory& memory, std::uint32_t bucket_count, std::size_t entries_max);

  /// Makes the table hold exactly `wanted`, whatever it held before, while readers read. Once, before all else.
  [[nodiscard]] Adoption adopt(std::span<const Enforcement> wanted, HostInstant now);

  [[nodiscard]] PutOutcome put(const Enforcement& wanted, HostInstant now);
  /// False when the key had no entry.
  bool remove(const Key& key);
  /// Deletes ended entries among the next `slots_max` slots, round and round. How many it deleted.
  std::size_t sweep(std::size_t slots_max, HostInstant now);

  [[nodiscard]] bool holds(const Key& key) const { return find(key).has_value(); }
  [[nodiscard]] std::size_t entries() const { return entries_; }
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }

 private:
  struct Slot {  // what an entry of the table stands for; numbered bucket * kEntriesPerBucket + entry
    Key key;
    HostInstant until{};
    bool used = false;
  };

  [[nodiscard]] std::size_t bucket_at(const Key& key, std::size_t distance) const;
  [[nodiscard]] std::optional<std::size_t> find(const Key& key) const;
  [[nodiscard]] std::optional<std::size_t> find_room(const Key& key, HostInstant now);
  [[nodiscard]] std::optional<std::size_t> find_unclaimed(const Key& key) const;
  void insert(std::size_t slot, const Enforcement& wanted);
  bool change(std::size_t slot, const Enforcement& wanted);
  void erase(std::size_t slot);
  void occupy(std::size_t slot, const Enforcement& wanted);
  void set_overflow(std::size_t bucket, bool overflow);
  void claim_wanted(std::span<const Enforcement> wanted, HostInstant now, Adoption& adoption);
  [[nodiscard]] std::size_t delete_unclaimed();

  TableMemory& memory_;
  std::uint32_t bucket_count_;
  /// An operator's block finds room when automatic ones no longer do: there are two places for each of entries_max.
  static constexpr std::size_t kOperatorReserve = 4;
  [[nodiscard]] std::size_t entries_max_for(const Enforcement& wanted) const;

  std::size_t entries_max_;
  std::vector<Slot> slots_;
  std::vector<std::uint8_t> passing_;  // at most (kProbeBucketsMax - 1) * kEntriesPerBucket
  std::size_t entries_ = 0;
  std::size_t sweep_next_ = 0;
  bool adopted_ = false;
};

}  // namespace popgate
