// SPDX-License-Identifier: Apache-2.0
//
// The read side of the table's protocol (table_format.h), over any memory that has `load(word)`: the mapping in a
// worker, and in the tests a memory that tries every interleaving with the writer.
//
// Threads: any number at once; at most kProbeBucketsMax * kEntriesPerBucket * 3 loads, whatever the writer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "libclient/check/table_format.h"

namespace popgate {

/// An entry in force: what it says, and where and how it was read.
struct FoundEntry {
  TableValue value;
  microseconds remaining{0};
  std::size_t value_word = 0;      // where V is
  std::uint64_t packed_value = 0;  // V as it was then
};

/// One entry if it is in force for the tag in `tag_word`. `now` is asked only here, so that the look-up of a key
/// without an entry reads no clock; it returns nothing when the whole table counts as empty.
template <typename Words, typename Now>
[[nodiscard]] inline std::optional<FoundEntry> read_entry(const Words& words, std::size_t word, std::uint64_t tag_word,
                                                          const Now& now) noexcept {
  const std::uint64_t value_word = words.load(word + 1);
  const TableValue value = unpack_value_word(value_word);
  if (value.until == 0) return std::nullopt;                                            // deleted
  if (gen_in_value_word(value_word) != gen_in_tag_word(tag_word)) return std::nullopt;  // being inserted, or replaced
  // If V was the next tenant's, then its T, stored before it, is seen here.
  if (((words.load(word) ^ tag_word) & ~kOverflowBit) != 0) return std::nullopt;
  const std::optional<HostInstant> instant = now();
  if (!instant) return std::nullopt;
  const microseconds remaining = until_remaining(value.until, *instant);
  if (remaining.count() <= 0) return std::nullopt;
  return FoundEntry{value, remaining, word + 1, value_word};
}

template <typename Words, typename Now>
[[nodiscard]] inline std::optional<FoundEntry> search_table(const Words& words, std::uint32_t bucket_count,
                                                            const Key& key, const Now& now) noexcept {
  const std::uint64_t tag = tag_of(key);
  const std::size_t home = home_bucket(key, bucket_count);
  for (std::size_t distance = 0; distance < kProbeBucketsMax; ++distance) {
    const std::size_t base = bucket_word((home + distance) & (bucket_count - 1));
    const std::uint64_t first = words.load(base);
    for (std::size_t entry = 0; entry < kEntriesPerBucket; ++entry) {
      const std::size_t word = base + entry * kWordsPerEntry;
      const std::uint64_t tag_word = entry == 0 ? first : words.load(word);
      if (tag_in(tag_word) != tag) continue;
      // A dead entry may still carry the tag of a key that lives further on: go on looking.
      if (const auto found = read_entry(words, word, tag_word, now)) return found;
    }
    if ((first & kOverflowBit) == 0) break;
  }
  return std::nullopt;
}

}  // namespace popgate
