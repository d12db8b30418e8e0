// SPDX-License-Identifier: Apache-2.0
//
// What the table says of a key: its entry, and whether the brakes in the header turn it off, as one answer. Over any
// memory of words and any brakes, like table_search.h and table_brakes.h.
//
// Threads: any number at once; at most kAnswerTriesMax searches and looks at the brakes, whatever the writer does.
// Invariants: 1. An entry whose rule was off for as long as the entry was in the table is never answered as one that is
//                not: the writer takes entries of a rule out before it frees the rule's word, and the reader looks at
//                the entry again behind the words.
//             2. An entry that is only changed meanwhile is found all the same.
// Limits: an entry that changes at each of kAnswerTriesMax looks, which takes as many publications within one look-up,
//         is answered as it was read last.
#pragma once

#include <optional>

#include "libclient/check/table_brakes.h"
#include "libclient/check/table_reader.h"
#include "libclient/check/table_search.h"

namespace popgate {

struct EnforcedEntry {
  FoundEntry entry;
  bool turned_off = false;
};

inline constexpr int kAnswerTriesMax = 3;

template <typename Words, typename Brakes, typename Now>
[[nodiscard]] inline std::optional<EnforcedEntry> search_enforced(const Words& words, const Brakes& brakes,
                                                                  std::uint32_t bucket_count, const Key& key,
                                                                  const Now& now) noexcept {
  for (int tries = 1;; ++tries) {
    const auto entry = search_table(words, bucket_count, key, now);
    if (!entry) return std::nullopt;
    const bool by_operator = (entry->value.flags & kTableFlagOperator) != 0;
    const bool turned_off = is_turned_off(brakes, entry->value.rule, by_operator);
    const bool same = words.load(entry->value_word) == entry->packed_value;
    if (turned_off || same || tries == kAnswerTriesMax) return EnforcedEntry{*entry, turned_off};
  }
}

}  // namespace popgate
