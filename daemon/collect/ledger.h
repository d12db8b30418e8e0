// SPDX-License-Identifier: Apache-2.0
//
// The account of every hit, per rule, in shared memory, so that the next daemon can state what was lost with this one.
//
//     recorded = delivered + uncertain + dropped + expired + lost + pending     (exactly, per rule, across restarts)
//
// `drained` is what was taken from rings; it advances together with the ring's tail through a redo journal in the same
// file, so that a daemon killed at any instruction neither counts a hit twice nor forgets one. `recorded` is drained
// plus what workers dropped plus what still waits in rings. What a daemon had drained and not accounted for when it
// ended is *lost with a daemon*: the next one adds it to `lost` when it opens the file.
//
// The ledger and not the ring says how far a ring was drained: a daemon killed between the ledger's step and the store
// of the ring's tail leaves the tail behind, and the worker brings the ring back only later. So each ring has a small
// account here, and the next daemon sets the tail from it.
//
// The rows also keep each rule's number stable: a row belongs to a rule name (its RuleId) until it is released.
//
// Threads: the event loop's. Another process may read the file.
// Invariants: 1. Columns only rise.
//             2. Hits are drained before any other column of theirs rises, so that pending() is never negative. (Who
//                feeds hits from elsewhere than a ring, replay say, adds them to kDrained first.)
// Limits: kRuleNumbersMax rows, of which row 0 stands for "no rule" and is never given out; a row is never reused while
//         an entry of the table may carry its number (who calls release() sees to it). kRingAccountsMax rings are
//         remembered; beyond that the one is forgotten that no daemon has seen for longest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/result.h"
#include "libclient/key.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {

inline constexpr RuleNumber kNoRule = 0;
inline constexpr std::size_t kRingAccountsMax = 2048;

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

/// Hits of one rule.
struct RuleHits {
  RuleNumber rule = kNoRule;
  std::uint64_t hits = 0;
};

/// How far the ledger has taken a ring over. Both are to be stored into the ring after the step, and again when the
/// ring comes back.
struct RingStep {
  std::uint64_t tail = 0;
  RuleNumber fold_rule = kNoRule;  // the rule folded last
  std::uint32_t reserved = 0;
  std::uint64_t fold_count = 0;  // its dropped hits that are in the ledger
};

/// Index of a ring's account.
using RingAccount = std::uint32_t;

class Ledger {
 public:
  /// Opens or creates the file and takes its lock; a file of another version or a damaged one is renamed to
  /// `path`.refused and a new one is started (`note` then says so). Adds to kLost what the last daemon left pending.
  /// Fails when another process has the ledger open, or when there is no room for it.
  [[nodiscard]] static Result<std::unique_ptr<Ledger>> open(const std::string& path, std::string& note);
  /// The same in plain memory, for replay and tests.
  [[nodiscard]] static std::unique_ptr<Ledger> in_memory();
  virtual ~Ledger() = default;

  /// The number of a rule, from its row; a free row becomes its own. Empty when every row is taken, or the file cannot
  /// grow, or the rule is 0.
  [[nodiscard]] virtual std::optional<RuleNumber> number_for(RuleId rule) = 0;
  /// Frees the row of a rule that no longer exists and that nothing refers to.
  virtual void release(RuleNumber number) = 0;

  /// Ignored for a number without a row.
  virtual void add(RuleNumber rule, LedgerColumn column, std::uint64_t hits) = 0;
  [[nodiscard]] virtual bool has_row(RuleNumber rule) const = 0;
  [[nodiscard]] virtual LedgerRow row(RuleNumber rule) const = 0;
  [[nodiscard]] virtual std::vector<RuleNumber> rows() const = 0;

  /// The account of a ring that was attached; `step` is what the ledger last took from it, or, for a ring that it does
  /// not know, what the caller passes (the ring's own tail). Forgets the oldest ring when there is no room.
  [[nodiscard]] virtual RingAccount account_for(const RingId& ring, RingStep& step) = 0;
  /// Takes hits out of a ring: adds `drained` (at most kDrainBatchMax different rules, each with a row) to kDrained and
  /// moves the account's tail, both or neither.
  virtual void drain(RingAccount account, std::uint64_t tail, std::span<const RuleHits> drained) = 0;
  /// Takes over what a worker dropped under one rule: adds `hits` to kRingDropped and remembers the fold, both or
  /// neither. The rule has a row.
  virtual void fold(RingAccount account, RuleNumber rule, std::uint64_t hits, std::uint64_t fold_count) = 0;
  /// The ring is gone for good, and its tail and folds are stored in it.
  virtual void forget(RingAccount account) = 0;
};

inline constexpr std::size_t kDrainBatchMax = 1024;  // hits taken out of a ring in one step

}  // namespace popgate
