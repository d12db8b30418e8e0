// SPDX-License-Identifier: Apache-2.0
//
// Adds hits up per key and slot between two flushes, so that a hot key costs one increment a flush and not one a hit.
//
// Every hit ends in exactly one place: in a sum that a flush hands on, or, accounted to the ledger, expired (its slot
// left the window before it could be flushed) or dropped (no room for another sum; a stamp ahead of the clock; a rule
// that no longer exists or whose slots have changed). Its hits have been added to kDrained before.
//
// Threads: the event loop's.
// Invariants: 1. A hit is counted in the slot of its own stamp, however late it comes.
//             2. flush() hands on only sums whose slot still touches the window of their rule.
// Limits: sums_max sums between two flushes; a hit that would need one more is dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/collect/hit_sum.h"
#include "daemon/collect/ledger.h"
#include "daemon/metrics.h"
#include "daemon/rules.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {

class Collector {
 public:
  struct Options {
    std::size_t sums_max = 262144;  // 10 MiB of sums and 2 MiB of index, taken when they are needed
    std::uint64_t seed = 0;         // random: a worker that knew it could crowd the index
  };

  Collector(Options options, Ledger& ledger);

  void use_rules(SharedRules rules);
  void add(const Hit& hit, PopInstant now);
  /// Moves the sums to `out`, replacing what it held.
  void flush(PopInstant now, std::vector<HitSum>& out);
  [[nodiscard]] std::size_t sums() const { return sums_.size(); }
  void visit(const MetricVisitor& visitor) const;

 private:
  struct Figures {
    std::uint64_t hits = 0;
    std::uint64_t flushed_sums = 0;
    std::uint64_t expired = 0;
    std::uint64_t dropped_full = 0;
    std::uint64_t dropped_ahead = 0;
    std::uint64_t dropped_rule = 0;
  };

  [[nodiscard]] const Rule* rule(RuleNumber number) const {
    return number < by_number_.size() ? by_number_[number] : nullptr;
  }
  void add_to_slot(const Hit& hit, SlotIndex slot);
  [[nodiscard]] std::size_t place_of(const Key& key, RuleNumber rule, SlotIndex slot) const;
  void reindex(std::size_t places);
  void drop(RuleNumber rule, std::uint64_t hits, std::uint64_t& figure);
  void expire(RuleNumber rule, std::uint64_t hits);

  Options options_;
  Ledger& ledger_;
  SharedRules rules_;
  std::vector<const Rule*> by_number_;  // into rules_: one load a hit instead of a hash look-up
  std::vector<HitSum> sums_;            // in the order of their first hit
  std::vector<std::uint32_t> index_;    // open addressing: place in sums_ + 1, or 0; a power of two, at most half full
  Figures figures_;
};

}  // namespace popgate
