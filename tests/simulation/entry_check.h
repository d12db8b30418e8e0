// SPDX-License-Identifier: Apache-2.0
//
// Promise 6, held against what each node was truly told: no lift is undone by a decision that had not seen it, no end
// moves later, news arrives wherever a clean way leads, and in the end every node holds and enforces the same.
//
// It keeps which lifts each node has heard of, by looking at its set after every change, and with each decision those
// that its decider had heard of. Nothing of it is taken from versions but their identity and their epoch's order.
//
// Threads: one.
#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/simulation/pop.h"

namespace popgate::simulation {

class EntryCheck {
 public:
  /// News reaches every node to which a way of at most two clean stretches leads.
  static constexpr microseconds kSpreadWithin{1'000'000};
  /// A stretch is clean when nothing disturbed it for so long: peers are connected again by then.
  static constexpr microseconds kCleanFor{12'000'000};
  /// How much later than its decider's end a copy may end. A frame's delay beyond the fastest that the receiver saw is
  /// subtracted; what the fastest itself was under way, at most a hello's time-out and its answer, is not.
  static constexpr microseconds kCopyLater{3'500'000};
  /// A node without room refuses automatic entries, and is given them again so long after it has room.
  static constexpr microseconds kRefusedFor{10'000'000};

  explicit EntryCheck(Pop& pop) : pop_(pop) {}
  /// After each turn of a daemon's loop.
  void turn(Node& node);
  /// The daemon was started anew; without its record file it knows nothing of what it was told before.
  void started(Node& node, bool with_records);
  /// Empty when all nodes hold and enforce the same; else a difference.
  [[nodiscard]] std::string difference() const;

  /// Nodes that hear at once what this one is told.
  [[nodiscard]] std::set<HostNumber> reached_from(HostNumber from) const;

  [[nodiscard]] std::uint64_t decisions() const { return decisions_; }
  [[nodiscard]] std::uint64_t lifts() const { return lifts_; }
  [[nodiscard]] std::uint64_t forgiven() const { return forgiven_; }
  [[nodiscard]] microseconds latest_copy() const { return latest_copy_; }

 private:
  using Lifts = std::set<Version>;
  struct Told {
    Digest digest;
    bool looked = false;
    std::map<Key, Lifts> lifts;
    std::map<Key, Lifts> by_epoch;  // that the deciders of what it holds had heard of
    std::map<Version, HostInstant> ends;
  };
  struct Origin {
    Lifts known;  // to the decider
    ModelInstant end{};
  };

  void look_at(Node& node, Told& told, const Mitigation& entry);
  [[nodiscard]] Told& told_of_decider(const Mitigation& entry);
  void look_at_lift(Told& told, const Mitigation& entry);
  void look_at_end(Node& node, Told& told, const Mitigation& entry);
  void look_for_undone(Node& node, const Told& told);
  void expect_spread(Node& from, const Mitigation& entry);
  /// It may lack it, because it had no room.
  [[nodiscard]] static bool is_excused(const Node& node, const Mitigation& entry);
  [[nodiscard]] static bool has(Node& node, const Mitigation& entry);

  Pop& pop_;
  std::map<HostNumber, Told> told_;
  std::map<Version, Origin> origins_;
  std::uint64_t decisions_ = 0;
  std::uint64_t lifts_ = 0;
  std::uint64_t forgiven_ = 0;
  microseconds latest_copy_{0};
};

}  // namespace popgate::simulation
