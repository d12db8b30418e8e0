// SPDX-License-Identifier: Apache-2.0
//
// The read side of the brakes in the table's header, over anything that has `all_off()`, `count()` and `slot(i)`: the
// mapping in a worker, and in the tests a memory that tries every interleaving with the writer.
//
// Threads: any number at once; at most kTableRulesOffMax + 3 loads, whatever the writer does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libclient/check/table_format.h"

namespace popgate {

/// Does an entry of this rule only log now? What an operator blocked is no rule's doing: only `all_off` stops it.
/// `all_off` is looked at twice: when it is stored and the rule's slot is freed in one change, a reader that had looked
/// at the one before and at the other after would find neither.
template <typename Brakes>
[[nodiscard]] inline bool is_turned_off(const Brakes& brakes, RuleNumber rule, bool by_operator) noexcept {
  if (brakes.all_off()) return true;
  if (by_operator) return false;
  const std::uint32_t count = std::min(brakes.count(), kTableRulesOffMax);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (brakes.slot(i) == rule) return rule != 0;
  }
  return brakes.all_off();
}

}  // namespace popgate
