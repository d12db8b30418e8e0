// SPDX-License-Identifier: Apache-2.0
//
// Promise 7, held against the table that workers look into and the counters of the store: a changed rule judges again
// what it blocks, and counters outlive a change of anything but what they count.
//
//     rule deleted or disabled      it blocks nobody
//     rule has `action: log`        it blocks nobody; the entry says "would block"
//     rule as at the decision       the entry stands, to its end
//     rule changed                  stands only when the evidence of the decision is over the limit of now, and not
//                                   longer than the duration of now lasts from the decision
//     counter identity unchanged    every known total, every hit unsent or under way and every row of the ledger is
//                                   after the change what it was before
//
// The bound: from the end of the turn in which a node takes its new rules, which is as soon as it has read them. The
// rules are compared as texts would be, not by the revision that the stages go by.
//
// Beside that, promise 9: an entry that workers were once told of is told until it ends, whatever came after it.
//
// Threads: one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tests/simulation/traffic.h"

namespace popgate::simulation {

class RetractCheck {
 public:
  /// A look is due when the set or the rules have changed, and every so many turns.
  static constexpr std::uint64_t kTurnsBetweenLooks = 16;
  /// The table's end is rounded up to its step.
  static constexpr microseconds kTableStep{16'000};

  RetractCheck(Pop& pop, const Traffic& traffic) : pop_(pop), traffic_(traffic) {}
  void turn(Node& node);
  void reload(Node& node, Node::Reload reload);
  /// The daemon was started anew: what it told workers of is what its table still tells.
  void started(Node& node) { seen_[node.host()].told.clear(); }
  /// Entries that were judged again by another rule than that of their decision, and how many of them ended by it.
  [[nodiscard]] std::uint64_t judged_again() const { return judged_again_; }
  [[nodiscard]] std::uint64_t retracted() const { return retracted_; }

 private:
  struct Seen {
    std::uint64_t turns = 0;
    Digest digest;
    SharedRules rules;
    std::map<Key, Version> told;  // to workers
  };
  struct Counted {
    std::vector<SlotCount> slots;
    LedgerRow row;
  };
  struct Before {
    SharedRules rules;
    std::map<Key, Counted> counters;
  };

  void look(Node& node, Seen& seen);
  void look_at(Node& node, Seen& seen, const Mitigation& entry);
  void look_at_blocking(Node& node, const Mitigation& entry, const TableAnswer& answer);
  void look_at_end(Node& node, const Mitigation& entry, const Rule& rule, const TableAnswer& answer);
  /// The end that the entry has under this rule; empty: none.
  [[nodiscard]] std::optional<HostInstant> end_under(const Rule& rule, const Mitigation& entry);
  void remember_decision(Node& node, const Mitigation& entry);
  [[nodiscard]] Before counters_of(Node& node) const;
  void compare(Node& node, const Before& before);
  void broken(Node& node, const std::string& promise, const Mitigation& entry, const std::string& how);

  Pop& pop_;
  const Traffic& traffic_;
  std::map<HostNumber, Seen> seen_;
  std::map<Version, Rule> decided_under_;
  std::map<HostNumber, Before> before_;
  std::uint64_t judged_again_ = 0;
  std::uint64_t retracted_ = 0;
};

}  // namespace popgate::simulation
