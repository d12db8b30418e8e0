// SPDX-License-Identifier: Apache-2.0
//
// The sections of a block of compiled rules as typed spans, and the one check that makes them safe to follow.
//
// Threads: a value, const after open_block(); the bytes must not change while it is used (the daemon writes a new file
//          for each reload and never touches one that it has handed out).
// Invariants: 1. After open_block() returned null, every index in every record is inside the section it points into and
//                every text inside the text section, so that reading through a RulesBlock needs no further checks.
// Limits: as rules_format.h; open_block() reads every byte of the block once, about 13 ms for 300,000 rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libclient/match/rules_format.h"

namespace popgate {

struct RulesBlock {
  const RulesHeader* header = nullptr;
  const SecondSecretRecord* second_secret = nullptr;  // null: there is one secret
  std::span<const char> text;
  std::span<const TrustedRecord> trusted;
  std::span<const RuleRecord> rules;
  std::span<const std::uint32_t> numbers;
  std::span<const KeyPartRecord> key_parts;
  std::span<const TextRecord> methods;
  std::span<const GroupRecord> groups;
  std::span<const PathRecord> paths;
  std::span<const std::uint32_t> candidates;
  std::span<const std::uint32_t> host_index;
  std::span<const std::uint32_t> path_index;
  std::span<const std::uint32_t> name_index;

  [[nodiscard]] std::string_view text_of(const TextRecord& record) const noexcept {
    return {text.data() + record.offset, record.bytes};
  }
};

/// Null, and `block` filled in, when `bytes` is a well-formed block of this version; otherwise why it is not (a string
/// literal), and `block` is not to be used.
[[nodiscard]] const char* open_block(std::span<const std::byte> bytes, RulesBlock& block) noexcept;

}  // namespace popgate
