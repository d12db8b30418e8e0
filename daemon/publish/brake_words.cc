// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/brake_words.h"

#include <algorithm>
#include <set>

#include "libclient/check/table_format.h"

namespace popgate {
namespace {

// What another daemon left is not trusted to be in range.
std::uint32_t slots_in_use(const BrakeMemory& memory) {
  return std::min(memory.load(BrakeMemory::kCount), kTableRulesOffMax);
}

void add(BrakeMemory& memory, RuleNumber rule) {
  const std::uint32_t count = slots_in_use(memory);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (memory.load(BrakeMemory::kFirstSlot + i) == 0) return memory.store(BrakeMemory::kFirstSlot + i, rule);
  }
  POPGATE_ASSERT(count < kTableRulesOffMax);
  memory.store(BrakeMemory::kFirstSlot + count, rule);  // not seen yet
  memory.store(BrakeMemory::kCount, count + 1);
}

// So that readers look at no more than they must.
void forget_free_slots(BrakeMemory& memory) {
  const std::uint32_t count = slots_in_use(memory);
  std::uint32_t needed = count;
  while (needed > 0 && memory.load(BrakeMemory::kFirstSlot + needed - 1) == 0) --needed;
  if (needed != memory.load(BrakeMemory::kCount)) memory.store(BrakeMemory::kCount, needed);
}

}  // namespace

void write_brakes(BrakeMemory& memory, const BrakeEffect& wanted) {
  POPGATE_ASSERT(wanted.rules.size() <= kTableRulesOffMax);
  if (wanted.all && memory.load(BrakeMemory::kAllOff) == 0) memory.store(BrakeMemory::kAllOff, 1);
  std::set<RuleNumber> missing(wanted.rules.begin(), wanted.rules.end());
  const std::uint32_t count = slots_in_use(memory);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t rule = memory.load(BrakeMemory::kFirstSlot + i);
    if (rule != 0 && missing.erase(rule) == 0) memory.store(BrakeMemory::kFirstSlot + i, 0);
  }
  for (const RuleNumber rule : missing) add(memory, rule);
  forget_free_slots(memory);
  // Last: what is off by itself is so before all else goes on.
  if (!wanted.all && memory.load(BrakeMemory::kAllOff) != 0) memory.store(BrakeMemory::kAllOff, 0);
}

BrakeEffect read_brakes(const BrakeMemory& memory) {
  BrakeEffect effect{.all = memory.load(BrakeMemory::kAllOff) != 0, .rules = {}};
  const std::uint32_t count = slots_in_use(memory);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t rule = memory.load(BrakeMemory::kFirstSlot + i);
    if (rule != 0 && rule < kRuleNumbersMax) effect.rules.push_back(rule);
  }
  std::ranges::sort(effect.rules);
  effect.rules.erase(std::unique(effect.rules.begin(), effect.rules.end()), effect.rules.end());
  return effect;
}

}  // namespace popgate
