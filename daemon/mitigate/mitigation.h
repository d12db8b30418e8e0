// SPDX-License-Identifier: Apache-2.0
//
// A mitigation: one key, blocked (or throttled, or only logged) until an instant, who decided it, and on what evidence.
//
// It is the unit of everything behind the decision: merged, recorded, sent to peers, published.
//
// Threads: values.
// Invariants: 1. `version` orders two entries for one (space, key) the same way on every node.
//             2. An entry with `lifted` set is a tombstone: it blocks nothing, holds for both spaces (its own is
//                kOperator) and beats every decision made without knowing it. Its `until` says how long it is kept.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/rules.h"
#include "libclient/instant.h"
#include "libclient/key.h"

namespace popgate {

using NodeId = std::uint64_t;  // hash of the node's name
[[nodiscard]] NodeId node_id(std::string_view node_name);

/// Rules' decisions and operators' blocks live apart: neither shortens the other.
enum class Space : std::uint8_t { kAutomatic = 0, kOperator = 1 };

/// Which of two entries for one key stands. A lift raises the key's epoch; a decision carries the epoch it had seen.
/// The epoch of a lift is its watermark in microseconds, or one more than the epoch it had seen when that is later. So
/// two operators who lift at the same time on two nodes cannot choose the same one by chance, and a decision that saw
/// only the later one has counted nothing that the other forgave.
struct Version {
  std::uint64_t epoch = 0;    // 0: no lift yet
  std::uint64_t counter = 0;  // of the node that decided; rises with every decision of it, across restarts
  NodeId node = 0;
  std::uint64_t incarnation = 0;  // of that node's daemon: start time in microseconds
  friend auto operator<=>(const Version&, const Version&) = default;
};

/// What a decision went by: the PoP's counters, or, while the key's shard could not be counted on, what the rule's
/// on_counter_failure says. The numbers travel and are recorded.
enum class DecidedUnder : std::uint8_t { kCounters = 0, kLocal = 1, kClosed = 2 };
inline constexpr std::size_t kDecidedUnders = 3;
[[nodiscard]] std::string_view decided_under_name(DecidedUnder mode);

/// Why it was decided.
struct Evidence {
  std::uint64_t lo = 0;
  double estimate = 0;
  std::optional<std::uint64_t> hi;
  std::uint64_t limit = 0;  // the figure was held against it: the rule's, or under kLocal what this node may let pass
  DecidedUnder under = DecidedUnder::kCounters;
};

struct Mitigation {
  Space space = Space::kAutomatic;
  Key key;
  RuleId rule = 0;  // 0: an operator's block outside every rule
  std::uint64_t rule_revision = 0;
  Version version;
  bool lifted = false;
  PopInstant watermark{};   // of a lift: hits up to it no longer count for the key; its epoch as an instant
  HostInstant until{};      // on this host's clock
  PopInstant until_wall{};  // for people, and for a record file read after a reboot
  PopInstant decided_at{};  // the decider's wall clock, for people
  std::string decided_by;   // the decider's node name
  std::string reason;       // operator's words, or empty
  Evidence evidence;
};

/// What is to be enforced for a key on this node now, after both spaces and this node's rules: what the table
/// publishes.
struct Enforcement {
  Key key;
  RuleNumber rule = 0;
  HostInstant until{};
  bool log_only = false;
  bool by_operator = false;
};

}  // namespace popgate
