// SPDX-License-Identifier: Apache-2.0
//
// Whether this node may block: what was ordered for the node itself and for the whole PoP, for everything and for
// single rules.
//
// Each scope is a register that only moves forward (brake.h). The PoP's registers are replicated: a node sends all of
// them to every peer that it greets, and every change from then on, so that any two nodes that can hear each other hold
// the same, whatever was lost, repeated or reordered before. Blocking is off for a rule when any of four registers says
// so: node or PoP, everything or the rule. `on` never overrules another scope's `off`.
//
// `on` is kept as a register too: a node that was away with an old `off` must find it.
//
// A node that has just started may have lost its file, or have a stale one, and its clock may be behind: then it does
// not know what its former self and its peers have ordered, and its own orders could lose to those that a person gave
// them to undo. Therefore what it is ordered for the PoP before it has heard a peer is in force here at once, and
// *untold*: no peer can have given an order that knew it. What peers say meanwhile is taken as ever, but where their
// `on` stands over an untold `off`, that is given anew with a version past theirs: in doubt it is off. When a peer has
// said all that it knows, what is untold is told, and from then on is an order like any other.
//
//     off for everything   nothing blocks, operators' blocks included: the point is "stop blocking now"
//     off for a rule       what the rule decided does not block; what an operator blocked by hand under it still does,
//                          because a fuse must not undo what a person ordered
//
// Threads: the event loop's. on_change may read, not change.
// Invariants: 1. A register never goes back.
//             2. What is untold was never told to anybody, so that no order can have known it.
// Limits: kBrakesMax registers for the node and as many for the PoP. At the bound the oldest `on` is forgotten (a node
//         that was away for as long may then bring its `off` back, loudly); when all are `off`, further orders are
//         refused and counted. kBrakeStampMax: the year 2255.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/metrics.h"
#include "daemon/mitigate/brake.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kBrakesMax = 4096;
inline constexpr std::uint64_t kBrakeStampMax = std::uint64_t{1} << 53;

/// Whom an order is for.
enum class BrakeSide : std::uint8_t { kNode = 0, kPop = 1 };

/// What workers are told.
struct BrakeEffect {
  bool all = false;
  std::vector<RuleNumber> rules;  // ascending; of those, rules that this node has
  friend bool operator==(const BrakeEffect&, const BrakeEffect&) = default;
};

class Brakes {
 public:
  using Registers = std::map<RuleId, Brake>;
  struct Change {
    BrakeSide side;
    std::span<const Brake> brakes;  // never empty
    NodeId from = 0;                // the peer that told; 0: ordered here, or restored
    bool untold = false;            // not for the peers yet
  };
  using OnChange = std::function<void(const Change&)>;

  Brakes(std::string node_name, OnChange on_change);
  Brakes(const Brakes&) = delete;
  Brakes& operator=(const Brakes&) = delete;

  struct Order {
    BrakeSide side = BrakeSide::kNode;
    RuleId rule = kEveryRule;
    bool off = true;
    BrakeOrigin origin = BrakeOrigin::kOperator;
    std::string reason{};  // cut at kReasonBytesMax
  };
  /// An order that changes nothing but its time and reason is an order all the same.
  [[nodiscard]] Status order(const Order& order, PopInstant wall);
  /// Registers of the PoP, from a peer.
  void merge(std::span<const Brake> brakes, NodeId from);
  /// From disk. on_change is not called. `untold`: it was when it was written.
  void restore(BrakeSide side, const Brake& brake, bool untold = false);
  /// No order from now on has this stamp or an earlier one: it was given before, whatever else is forgotten.
  void pass(std::uint64_t stamp);

  /// There are peers, and none of them has been heard: see above. Before anything is restored.
  void expect_peers() { awaiting_ = true; }
  /// A peer has told all registers that it holds. Returns what was untold, and is to be told now: an `off` past every
  /// stamp that this node ever passed.
  [[nodiscard]] std::vector<Brake> heard_peer();
  [[nodiscard]] bool is_untold(BrakeSide side, RuleId rule) const {
    return side == BrakeSide::kPop && untold_.contains(rule);
  }
  /// What a peer is told when it is greeted: the PoP's registers but for what is untold.
  [[nodiscard]] std::vector<Brake> told() const;

  /// More than kTableRulesOffMax rules are more than workers can be told one by one: then everything is off, because
  /// what was told to stop must not go on.
  [[nodiscard]] BrakeEffect effect(const RuleSet& rules) const;
  /// Does blocking stand still for what this rule decides? `by_operator`: for an operator's block.
  [[nodiscard]] bool is_off(RuleId rule, bool by_operator) const;
  /// The rule was turned off itself, for the node or for the PoP.
  [[nodiscard]] bool is_off_by_itself(RuleId rule) const;
  [[nodiscard]] bool any_off() const;
  [[nodiscard]] const Registers& registers(BrakeSide side) const { return registers_[static_cast<int>(side)]; }
  [[nodiscard]] const Brake* find(BrakeSide side, RuleId rule) const;
  /// Of everything: past every stamp that stands here.
  [[nodiscard]] std::uint64_t stamp() const { return stamp_; }
  /// Equal on two nodes exactly when the PoP's registers are.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  struct Counts {
    std::uint64_t ordered = 0;
    std::uint64_t merged = 0;
    std::uint64_t unchanged = 0;
    std::uint64_t kept = 0;
    std::uint64_t refused = 0;
    std::uint64_t forgotten = 0;
  };
  [[nodiscard]] bool put(BrakeSide side, const Brake& brake);
  [[nodiscard]] bool make_room(BrakeSide side);
  [[nodiscard]] bool is_in_doubt(const Brake& held, const Brake& peers) const;
  [[nodiscard]] Brake given_anew(Brake held);
  void drop(BrakeSide side, Registers::iterator place);

  std::string node_name_;
  NodeId node_;
  OnChange on_change_;
  Registers registers_[2];
  bool awaiting_ = false;    // no peer was heard since the start
  std::set<RuleId> untold_;  // of the PoP's registers
  std::uint64_t stamp_ = 0;
  std::uint64_t digest_ = 0;  // sum of the hashes of the PoP's registers
  Counts counts_;
};

}  // namespace popgate
