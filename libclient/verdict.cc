// SPDX-License-Identifier: Apache-2.0
#include "libclient/verdict.h"

#include <algorithm>

namespace popgate {
namespace {

bool in_force(const TableAnswer& answer, std::uint8_t chance) noexcept { return answer.live && chance >= answer.admit; }

// Table and rules change at different moments of a reload: a rule blocks only when both say so.
bool stops(const TableAnswer& answer, const RuleFacts& facts) noexcept {
  if ((answer.flags & kTableFlagLogOnly) != 0) return false;
  return facts.blocks || (answer.flags & kTableFlagOperator) != 0;
}

}  // namespace

Decision decide(const RulesView& rules, const TableReader& table, std::span<const Match> matches,
                std::uint8_t chance) noexcept {
  Decision decision;
  std::uint32_t mitigated = 0;
  std::uint32_t counts_all = 0;
  for (std::uint32_t i = 0; i < matches.size(); ++i) {
    const RuleFacts facts = rules.facts(matches[i].rule);
    if (facts.counts_all) counts_all |= 1U << i;
    const TableAnswer answer = table.look_up(matches[i].key);
    if (!in_force(answer, chance)) continue;
    mitigated |= 1U << i;
    const bool stopped = stops(answer, facts);
    const bool first_of_its_kind = stopped ? !decision.blocked : !decision.blocked && !decision.would_block;
    const bool ends_later = stopped == decision.blocked && answer.remaining > decision.remaining;
    if (first_of_its_kind || ends_later) {
      decision.deciding = i;
      decision.remaining = answer.remaining;
    }
    (stopped ? decision.blocked : decision.would_block) = true;
  }
  const std::uint32_t all = matches.size() >= 32 ? UINT32_MAX : (1U << matches.size()) - 1;
  decision.counted = decision.blocked ? counts_all : (all & ~mitigated) | counts_all;
  return decision;
}

std::uint32_t retry_after_s(microseconds remaining) noexcept {
  const std::int64_t us = std::max<std::int64_t>(remaining.count(), 1);
  const std::int64_t seconds = us / 1'000'000 + (us % 1'000'000 != 0 ? 1 : 0);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(seconds, UINT32_MAX));
}

}  // namespace popgate
