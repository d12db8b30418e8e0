// SPDX-License-Identifier: Apache-2.0
//
// Every order about blocking goes through here, whoever gives it (an operator, a peer, a fuse): it is put into force
// and on disk (publish), told to the peers, and said aloud, now and again for as long as something is off.
//
// Threads: the event loop's.
// Limits: a reminder every kBrakeReminderPeriod; kBrakesNamedMax scopes by name in one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/mitigate/brakes.h"
#include "daemon/reactor.h"

namespace popgate {

class Ledger;
class Mesh;
class Publisher;
class RuleNames;

inline constexpr std::chrono::minutes kBrakeReminderPeriod{10};
inline constexpr std::size_t kBrakesNamedMax = 8;

class BrakeControl {
 public:
  struct Setup {
    std::string node;
    Reactor& reactor;
    const SharedRules& rules;
    const RuleNames& names;
    const Ledger& ledger;
    Mitigations& mitigations;
    Publisher& publisher;
    std::function<void(RuleId)> on_turned_on;  // of a rule, by whomever; empty: nobody needs to know
    bool has_peers = false;
  };

  explicit BrakeControl(Setup setup);

  /// What the daemon before left is in force again. Once, before the publisher reconciles.
  void restore();
  /// The rules have changed. `rejudge` takes out of the table what they no longer block; until then what was off under
  /// the rules `before` stays off, for a rule that is gone may have entries that nobody has taken out yet.
  void use_rules(const RuleSet& before, const std::function<void()>& rejudge);
  /// From now on peers are told; null: no longer.
  void use_mesh(Mesh* mesh) { mesh_ = mesh; }
  [[nodiscard]] Status order(const Brakes::Order& order) { return brakes_.order(order, setup_.reactor.wall_now()); }
  /// A peer has told all that it knows: what was untold until now is told.
  void heard_peer();
  /// Now and then: reminds while something is off, and writes again what could not be written.
  void tick();

  [[nodiscard]] Brakes& brakes() { return brakes_; }
  [[nodiscard]] const Brakes& brakes() const { return brakes_; }
  /// Its name; 16 hexadecimal digits for one that this node never had.
  [[nodiscard]] std::string name_of(RuleId rule) const;
  void visit(const MetricVisitor& visitor) const { brakes_.visit(visitor); }

 private:
  void on_change(const Brakes::Change& change);
  void tell_mitigations();
  void remind(HostInstant now);
  [[nodiscard]] std::string what(RuleId rule) const;
  void say(BrakeSide side, const Brake& brake) const;

  Setup setup_;
  Mesh* mesh_ = nullptr;
  bool restoring_ = false;
  HostInstant remind_at_{};
  Brakes brakes_;
};

}  // namespace popgate
