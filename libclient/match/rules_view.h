// SPDX-License-Identifier: Apache-2.0
//
// Reads the compiled rules that the daemon publishes: a flat, position-independent, versioned block of bytes
// (rules_format.h), mapped read-only.
//
// Threads: const after open(); any number at once.
// Invariants: 1. open() checks every offset, count and number once, so that later reads need no checks and cannot leave
//                the block, whatever the bytes are.
// Limits: kRulesBytesMax for the block; kRuleNumbersMax rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libclient/key.h"
#include "libclient/match/rules_block.h"

namespace popgate {

/// What the request path needs to know of one rule once it has matched.
struct RuleFacts {
  std::string_view name;  // lives as long as the mapping
  std::uint64_t limit = 0;
  std::uint64_t window_us = 0;
  std::uint32_t cost = 1;
  bool blocks = true;       // action: block; false: log only
  bool counts_all = false;  // count: all; false: only what passes
  bool fused = false;       // what it blocks is counted (max_blocked_share)
  bool exists = false;      // false: no rule has this number
};

class RulesView {
 public:
  RulesView() = default;

  /// True, and ready to use, when `bytes` is a well-formed block of this version. Otherwise the view stays empty,
  /// matches nothing, and `reason` (a string literal) says why. Reads every byte once: not for the request path.
  [[nodiscard]] bool open(std::span<const std::byte> bytes, const char*& reason) noexcept;

  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  [[nodiscard]] std::uint64_t revision() const noexcept;
  [[nodiscard]] HashSecrets secrets() const noexcept;
  [[nodiscard]] RuleFacts facts(RuleNumber rule) const noexcept;
  /// The rule of that name, by an index; null when there is none, or it is disabled.
  [[nodiscard]] const RuleRecord* find(std::string_view name) const noexcept;
  [[nodiscard]] std::size_t rule_count() const noexcept { return block_.rules.size(); }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// All empty when the view is.
  [[nodiscard]] const RulesBlock& block() const noexcept { return block_; }

 private:
  std::span<const std::byte> bytes_;
  RulesBlock block_;
};

// Here, so that a caller pays for the facts that it uses only.
inline RuleFacts RulesView::facts(RuleNumber rule) const noexcept {
  if (rule >= block_.numbers.size() || block_.numbers[rule] == kNoRecord) return {};
  const RuleRecord& record = block_.rules[block_.numbers[rule]];
  return {.name = block_.text_of(record.name),
          .limit = record.limit,
          .window_us = record.window_us,
          .cost = record.cost,
          .blocks = (record.flags & kRuleFlagBlocks) != 0,
          .counts_all = (record.flags & kRuleFlagCountsAll) != 0,
          .fused = (record.flags & kRuleFlagFused) != 0,
          .exists = true};
}

}  // namespace popgate
