// SPDX-License-Identifier: Apache-2.0
//
// Asks the mitigation table about a key. The table's bytes and protocol are table_format.h's.
//
// Threads: const after open(); any number at once, wait-free, while one writer in another process changes the table.
// Invariants: 1. Never writes, never reads outside the mapping, for any bytes in it.
//             2. A writer killed at any instruction cannot make a look-up answer with another key's entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libclient/instant.h"
#include "libclient/key.h"

namespace popgate {

/// The answer for one key.
struct TableAnswer {
  bool live = false;  // a mitigation is in force now
  RuleNumber rule = 0;
  std::uint8_t flags = 0;     // kTableFlag*
  std::uint8_t admit = 0;     // of 255: the share let through (throttle); 0: none
  microseconds remaining{0};  // rounded to the table's step, never early by more than it
};

inline constexpr std::uint8_t kTableFlagLogOnly = 1;   // the rule only logs
inline constexpr std::uint8_t kTableFlagOperator = 2;  // an operator's block

class TableReader {
 public:
  TableReader() = default;

  /// True when `bytes` begins with a well-formed header of this version and is as long as the header says. Otherwise
  /// the reader stays closed, answers "not live", and `reason` (a string literal) says why.
  [[nodiscard]] bool open(std::span<const std::byte> bytes, const char*& reason) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return bytes_.data() != nullptr; }
  /// Without a matching entry about 5 ns and one cache line; no clock is read.
  [[nodiscard]] TableAnswer look_up(const Key& key) const noexcept;
  /// The same at a given instant.
  [[nodiscard]] TableAnswer look_up(const Key& key, HostInstant now) const noexcept;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace popgate
