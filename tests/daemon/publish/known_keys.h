// SPDX-License-Identifier: Apache-2.0
//
// Keys of which a reader knows, at any moment, what the table may answer: residents are always in it, strangers never,
// and the rest come and go, but every answer for a key must be its own.
//
// All are at home in four buckets next to each other, so that they spill over one another and reuse entries at once.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "daemon/mitigate/mitigation.h"
#include "libclient/check/table_format.h"
#include "libclient/check/table_reader.h"

namespace popgate {

struct KnownKeys {
  static constexpr std::uint64_t kResidents = 12;
  static constexpr std::uint64_t kComers = 20;  // with the residents they just fit: 8 buckets from each home
  static constexpr std::uint64_t kStrangers = 8;
  static constexpr std::uint64_t kAll = kResidents + kComers + kStrangers;

  [[nodiscard]] static Key key(std::uint64_t i) { return {i % 4, (i + 1) << kTagShift}; }
  [[nodiscard]] static bool is_resident(std::uint64_t i) { return i < kResidents; }
  [[nodiscard]] static bool is_stranger(std::uint64_t i) { return i >= kResidents + kComers; }
  [[nodiscard]] static std::uint64_t comer(std::uint64_t random) { return kResidents + random % kComers; }
  /// A key's rule says whose it is, and how often it was changed.
  [[nodiscard]] static RuleNumber rule(std::uint64_t i, std::uint64_t change) {
    return static_cast<RuleNumber>(i * 16 + change % 16);
  }

  /// What is wrong with an answer; empty: nothing.
  [[nodiscard]] static std::string fault(std::uint64_t i, const TableAnswer& answer) {
    const std::string name = "key " + std::to_string(i);
    if (is_stranger(i) && answer.live) return name + ", which never was in, has rule " + std::to_string(answer.rule);
    if (is_resident(i) && !answer.live) return name + ", which never left, was not found";
    if (answer.live && answer.rule / 16 != i) return name + " has another key's rule " + std::to_string(answer.rule);
    return "";
  }
};

}  // namespace popgate
