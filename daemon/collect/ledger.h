// SPDX-License-Identifier: Apache-2.0
//
// The account of every hit, per rule, in shared memory, so that the next daemon can state what was lost with this one.
//
//     recorded = delivered + uncertain + dropped + expired + lost + pending          (exactly, per rule, across
//     restarts)
//
// `drained` is what was taken from rings; it advances together with the ring's tail through a redo journal in the same
// file, so that a daemon killed at any instruction neither counts a hit twice nor forgets one. `recorded` is drained
// plus what workers dropped plus what still waits in rings. What a daemon had drained and not accounted for when it
// ended is *lost with a daemon*: the next one adds it to `lost` when it opens the file.
//
// The rows also keep each rule's number stable: a row belongs to a rule name (its RuleId) until it is released.
//
// Threads: the event loop's. Another process may read the file.
// Invariants: 1. Columns only rise.
// Limits: kRuleNumbersMax rows; a row is never reused while an entry of the table may carry its number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/result.h"
#include "libclient/key.h"

namespace popgate {

enum class LedgerColumn : std::uint8_t {
  kDrained,      // taken from rings
  kDelivered,    // counted: a reply confirmed it
  kUncertain,    // sent, and the reply was lost: counted, in part or not at all
  kDropped,      // by collect or count at a bound, or refused by a shard
  kExpired,      // its slot left the window before it could be sent
  kLost,         // lost with a daemon
  kRingDropped,  // by workers whose ring was full
  kCount
};

struct LedgerRow {
  RuleId rule = 0;
  std::uint64_t columns[static_cast<int>(LedgerColumn::kCount)] = {};
  [[nodiscard]] std::uint64_t operator[](LedgerColumn column) const { return columns[static_cast<int>(column)]; }
  /// Drained and not yet accounted for.
  [[nodiscard]] std::uint64_t pending() const;
};

class Ledger {
 public:
  /// Opens or creates the file; a file of another version or a damaged one is renamed to `path`.refused and a new one
  /// is started (`note` then says so). Adds to kLost what the last daemon left pending.
  [[nodiscard]] static Result<std::unique_ptr<Ledger>> open(const std::string& path, std::string& note);
  /// The same in plain memory, for replay and tests.
  [[nodiscard]] static std::unique_ptr<Ledger> in_memory();
  virtual ~Ledger() = default;

  /// The number of a rule, from its row; a free row becomes its own. Empty when every row is taken.
  [[nodiscard]] virtual std::optional<RuleNumber> number_for(RuleId rule) = 0;
  /// Frees the row of a rule that no longer exists and that nothing refers to.
  virtual void release(RuleNumber number) = 0;

  virtual void add(RuleNumber rule, LedgerColumn column, std::uint64_t hits) = 0;
  [[nodiscard]] virtual LedgerRow row(RuleNumber rule) const = 0;
  [[nodiscard]] virtual std::vector<RuleNumber> rows() const = 0;
};

}  // namespace popgate
