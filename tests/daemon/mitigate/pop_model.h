// SPDX-License-Identifier: Apache-2.0
//
// A PoP of a few nodes as a model: the real Mitigations of each, a network that loses, repeats, delays and reorders,
// daemons that restart with and without their record file, and one clock that the test moves.
//
// Beside the nodes it keeps what nobody in a real PoP knows: which lifts each decision's decider had heard of, and
// the earliest end that a node ever gave to an entry.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/mitigate/mitigations.h"

namespace popgate {

/// One step of a history. What the numbers mean depends on the kind; every value is a step.
struct Step {
  std::uint8_t kind = 0;
  std::uint8_t node = 0;
  std::uint8_t key = 0;
  std::uint16_t amount = 0;
};

class PopModel {
 public:
  explicit PopModel(std::size_t nodes);
  PopModel(const PopModel&) = delete;
  PopModel& operator=(const PopModel&) = delete;

  void run(const Step& step);
  /// Loses what is under way, then every pair exchanges snapshots until nothing changes.
  void heal();

  // Each is empty when the property holds, else says what broke it.
  [[nodiscard]] std::string difference_between_nodes() const;
  [[nodiscard]] std::string undone_lift() const;
  [[nodiscard]] const std::string& crept_end() const { return crept_end_; }

 private:
  using LiftNames = std::set<Version>;
  struct Node {
    std::unique_ptr<Mitigations> set;
    std::map<EntryId, Mitigation> record;  // what the record file holds
    std::map<Key, LiftNames> heard;        // lifts that this node was told of, as lifts
    std::map<Version, HostInstant> earliest_end;
  };
  struct Message {
    std::size_t to = 0;
    std::size_t from = 0;
    Mitigation entry;
    bool in_snapshot = false;
  };

  void start(std::size_t node, bool with_record);
  void on_change(std::size_t node, const Mitigation& entry, const Origin& origin);
  void note_lifts_known(std::size_t node, const Mitigation& entry);
  void note_end(std::size_t node, const Mitigation& entry);
  void decide(std::size_t node, const Key& key, std::uint16_t amount);
  void deliver(const Message& message, microseconds jitter);
  bool snapshot(std::size_t from, std::size_t to);
  void advance(microseconds by);
  [[nodiscard]] PopInstant wall_of(std::size_t node) const;
  [[nodiscard]] Key key_of(std::uint8_t number) const { return {number % 3U, 0}; }

  std::vector<Node> nodes_;
  std::vector<Message> under_way_;
  std::map<Version, LiftNames> lifts_known_to_;  // by the decider when it decided
  Rule rule_;
  HostInstant now_;
  std::uint64_t incarnations_ = 0;
  std::string crept_end_;
};

}  // namespace popgate
