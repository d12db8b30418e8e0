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
  std::uint8_t flags = 0;     // kTableFlag*; a brake sets kTableFlagLogOnly
  std::uint8_t admit = 0;     // of 255: the share let through (throttle); 0: none
  microseconds remaining{0};  // until the end, which the table rounds up to its step of 16 ms
};

inline constexpr std::uint8_t kTableFlagLogOnly = 1;   // does not block: the rule only logs, or a brake is on
inline constexpr std::uint8_t kTableFlagOperator = 2;  // an operator's block

class TableReader {
 public:
  TableReader() = default;

  /// True when `bytes` begins with a well-formed header of this version and is as long as the header says. Otherwise
  /// the reader stays closed, answers "not live", and `reason` (a string literal) says why.
  [[nodiscard]] bool open(std::span<const std::byte> bytes, const char*& reason) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return table_ != nullptr; }
  /// Without a matching entry about 5 ns and one cache line; no clock is read.
  [[nodiscard]] TableAnswer look_up(const Key& key) const noexcept;
  /// The same at a given instant.
  [[nodiscard]] TableAnswer look_up(const Key& key, HostInstant now) const noexcept;
  /// When a daemon last wrote; boot when the reader is closed or no daemon has finished starting.
  [[nodiscard]] HostInstant heartbeat() const noexcept;

 private:
  template <typename Clock>
  [[nodiscard]] TableAnswer answer(const Key& key, const Clock& clock) const noexcept;

  const std::byte* table_ = nullptr;
  std::uint32_t bucket_count_ = 0;  // read from the mapping once, at open
};

}  // namespace popgate
