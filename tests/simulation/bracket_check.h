// SPDX-License-Identifier: Apache-2.0
//
// Promises 4, 5 and 11, held against what really happened at every judgement of every node.
//
//     lo:  never more than the hits truly made in the trailing window, and those in its slots that bear a wrong stamp
//          which their node could not know to be wrong (wrong_stamps.h); also while other nodes' clocks are off
//     hi:  right after a fresh read, where it is claimed: not less than what the shards were told for the slots of the
//          window, forgotten or not; so lost counters must be known to be lost
//     certain: whom it mitigates was over the limit, by the same hits; also on a node that knows its clock to be off
//
// Allowances, as ARCHITECTURE.md states them: a node whose own clock is off, and for a window after, has no lower
// bound, but `certain` still meets nobody new, unless the node could not tell; an increment of the last kUnreadMax may
// have come after the read; evictions are noticed within kEvictionsNoticed.
//
// Threads: one.
#pragma once

#include <map>

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class BracketCheck {
 public:
  static constexpr microseconds kUnreadMax{450'000};
  static constexpr microseconds kEvictionsNoticed{5'900'000};

  explicit BracketCheck(Pop& pop) : pop_(pop) {}
  void judged(Node& node, const SlotTotals& totals, const JudgedTotals& judged);
  /// Counters of this shard were evicted now.
  void evicted(HostNumber shard) { evicted_at_[shard] = pop_.world().now(); }
  /// How often `hi` was claimed and looked at.
  [[nodiscard]] std::uint64_t looked_at_hi() const { return looked_at_hi_; }
  [[nodiscard]] std::uint64_t looked_at_lo() const { return looked_at_lo_; }

 private:
  void look_at_lo(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule,
                  std::uint64_t most);
  void look_at_certain(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule,
                       std::uint64_t most);
  void look_at_hi(Node& node, const SlotTotals& totals, const JudgedTotals& judged, const Rule& rule);
  /// What a lower bound may say at most.
  [[nodiscard]] std::uint64_t most_in_window(Node& node, const Key& key, const WindowShape& shape) const;

  Pop& pop_;
  std::map<HostNumber, ModelInstant> evicted_at_;
  std::uint64_t looked_at_hi_ = 0;
  std::uint64_t looked_at_lo_ = 0;
};

}  // namespace popgate::simulation
