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

class Deciding {
 public:
  Deciding(const RulesView& rules, const TableReader& table, std::uint8_t chance) noexcept
      : rules_(rules), table_(table), chance_(chance) {}

  void look(std::uint32_t match, const Match& item) noexcept {
    const RuleFacts facts = rules_.facts(item.rule);
    if (facts.counts_all) counts_all_ |= 1U << match;
    weigh(match, item.key, facts, false);
  }
  void look_under_second(std::uint32_t match, RuleNumber rule, const Key& key) noexcept {
    weigh(match, key, rules_.facts(rule), true);
  }

  [[nodiscard]] Decision finish(std::size_t matches) noexcept {
    const std::uint32_t all = matches >= 32 ? UINT32_MAX : (1U << matches) - 1;
    decision_.counted = decision_.blocked ? counts_all_ : (all & ~mitigated_) | counts_all_;
    return decision_;
  }

 private:
  void weigh(std::uint32_t match, const Key& key, const RuleFacts& facts, bool by_second) noexcept {
    const TableAnswer answer = table_.look_up(key);
    if (!in_force(answer, chance_)) return;
    mitigated_ |= 1U << match;
    // What an operator blocked is not the rule's doing.
    if (facts.fused && (answer.flags & kTableFlagOperator) == 0) decision_.fused |= 1U << match;
    const bool stopped = stops(answer, facts);
    const bool first_of_its_kind = stopped ? !decision_.blocked : !decision_.blocked && !decision_.would_block;
    const bool ends_later = stopped == decision_.blocked && answer.remaining > decision_.remaining;
    if (first_of_its_kind || ends_later) {
      decision_.deciding = match;
      decision_.by_second = by_second;
      decision_.remaining = answer.remaining;
    }
    (stopped ? decision_.blocked : decision_.would_block) = true;
  }

  const RulesView& rules_;
  const TableReader& table_;
  std::uint8_t chance_;
  std::uint32_t mitigated_ = 0;
  std::uint32_t counts_all_ = 0;
  Decision decision_;
};

// Apart, so that the usual request pays one comparison for the change of a secret.
[[gnu::noinline]] Decision decide_under_both(Deciding deciding, const Matches& matches) noexcept {
  for (std::uint32_t i = 0; i < matches.count; ++i) {
    deciding.look(i, matches.items[i]);
    deciding.look_under_second(i, matches.items[i].rule, matches.second_keys[i]);
  }
  return deciding.finish(matches.count);
}

}  // namespace

Decision decide(const RulesView& rules, const TableReader& table, const Matches& matches,
                std::uint8_t chance) noexcept {
  if (matches.second != SecondSecret::kNone) return decide_under_both({rules, table, chance}, matches);
  Deciding deciding(rules, table, chance);
  for (std::uint32_t i = 0; i < matches.count; ++i) deciding.look(i, matches.items[i]);
  return deciding.finish(matches.count);
}

std::uint32_t retry_after_s(microseconds remaining) noexcept {
  const std::int64_t us = std::max<std::int64_t>(remaining.count(), 1);
  const std::int64_t seconds = us / 1'000'000 + (us % 1'000'000 != 0 ? 1 : 0);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(seconds, UINT32_MAX));
}

}  // namespace popgate
