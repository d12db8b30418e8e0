// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong in a run, drawn from its seed. As in swarm testing each seed allows only some kinds of fault, because
// a run in which everything fails all the time never gets far enough to meet what only one kind can break.
//
// Threads: one.
// Invariants: 1. Every fault ends by itself, or when all are healed.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tests/simulation/accounts_check.h"
#include "tests/simulation/bracket_check.h"
#include "tests/simulation/brake_orders.h"
#include "tests/simulation/entry_check.h"
#include "tests/simulation/limit_check.h"
#include "tests/simulation/pop.h"
#include "tests/simulation/retract_check.h"
#include "tests/simulation/rule_changes.h"
#include "tests/simulation/traffic.h"

namespace popgate::simulation {

enum class FaultKind : std::uint8_t {
  kPartition,       // a path between two hosts is cut, one way or both
  kIsolation,       // a node is cut from all others and from the shards
  kLoss,            // between two hosts, or everywhere
  kDelay,           // 20 to 300 ms, and what that overtakes
  kRepetition,      // packets come twice
  kClog,            // a path that carries a few kilobytes a second
  kNodeKill,        // SIGKILL, and a new daemon later
  kNodeRecordLoss,  // the same, and its disk is gone
  kNodeStop,        // an orderly stop
  kNodePause,       // SIGSTOP and SIGCONT
  kNodeSlow,        // a loop that comes late
  kShardRestart,    // a memcached comes back empty
  kShardOutage,     // a memcached is away for a while
  kShardPause,      // SIGSTOP: what was sent is carried out later
  kEviction,
  kNoMemory,   // a memcached stores nothing new
  kClockStep,  // of one node, beyond the tolerance, and back later; also of one that is about to start
  kLift,       // an operator's
  kBlock,
  kRulesChange,
  kFlood,  // of new clients, over the limit of a rule
  kBrake,  // blocking is ordered off, and on again later
  kCount
};
[[nodiscard]] std::string_view fault_name(FaultKind kind);

class Faults {
 public:
  struct Checks {
    BracketCheck& bracket;
    EntryCheck& entries;
    LimitCheck& limits;
    RetractCheck& retract;
    BrakeCheck& brakes;
  };

  Faults(Pop& pop, Traffic& traffic, Checks checks);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  /// Faults begin from now until `until`, when everything heals.
  void start(ModelInstant until);
  /// Ends every fault that is under way; every node and shard runs again.
  void heal();
  void begin(FaultKind kind);
  [[nodiscard]] const std::vector<FaultKind>& allowed() const { return allowed_; }
  [[nodiscard]] std::uint64_t begun() const { return begun_; }

 private:
  void next(ModelInstant until);
  /// Runs `end` after a while that is drawn, or when all is healed.
  void end_later(microseconds longest, std::function<void()> end);
  void disturb_path(const std::string& what, const Path& as, bool both_ways);
  [[nodiscard]] Path slow_path();
  void isolate();
  void lose_everywhere();
  void kill(bool with_records);
  void stop_node();
  void pause_node();
  void slow_node();
  void fault_of_shard(FaultKind kind);
  void step_clock(Node& node);
  [[nodiscard]] bool is_allowed(FaultKind kind) const { return std::ranges::find(allowed_, kind) != allowed_.end(); }
  void lift();
  void block();
  void change_rules();
  void brake();
  void flood();
  void started(Node& node, bool with_records);
  [[nodiscard]] Node* running_node();
  [[nodiscard]] HostNumber any_host();
  [[nodiscard]] const Traffic::Client& any_client();
  void note(const std::string& what) { pop_.world().note("fault: " + what); }

  Pop& pop_;
  Traffic& traffic_;
  Checks checks_;
  Random random_;
  RuleChanges rule_changes_;
  BrakeOrders brake_orders_;
  std::vector<FaultKind> allowed_;
  microseconds apart_max_{0};  // between two faults
  struct UnderWay {
    bool over = false;
    std::function<void()> end;
  };
  std::vector<std::shared_ptr<UnderWay>> under_way_;
  std::uint64_t begun_ = 0;
};

}  // namespace popgate::simulation
