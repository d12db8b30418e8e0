// SPDX-License-Identifier: Apache-2.0
//
// Replays requests through the real stages of N nodes on the log's clock, and judges what they decide.
//
// Each request goes to one node (by turns, by client, or at random), is matched by the real matcher against the
// compiled rules, meets the mitigations that this node enforces at that instant, and is recorded as libclient records
// it. Between requests the nodes flush, read, judge and tell each other. What is not modelled: the hit ring and the
// table (1 to 2 ms together), lost messages, and clocks that differ.
//
// Threads: one thread.
// Invariants: 1. The same requests, options and seed give the same report.
//             2. recorded = delivered + dropped + expired over all nodes, at the end.
// Limits: kReplayNodesMax nodes; keys_max keys a node.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "replay/logged_request.h"
#include "replay/oracle.h"
#include "replay/replay_node.h"
#include "replay/rule_matcher.h"
#include "replay/spread.h"

namespace popgate {

inline constexpr unsigned kReplayNodesMax = kOracleNodesMax;

struct ReplayOptions {
  unsigned nodes = 3;
  std::uint64_t seed = 1;
  microseconds flush_interval = milliseconds(50);
  microseconds round_trip = milliseconds(1);
  microseconds mesh_delay = milliseconds(1);
  Spread spread = Spread::kRoundRobin;
  std::uint32_t keys_max = 262144;
  std::vector<Rule> rules;  // their numbers do not matter
  HashSecret secret;
  /// Told of every decision of any node, at the instant at which it is made.
  std::function<void(const Mitigation&, PopInstant)> on_decided;
};

class Replayer {
 public:
  explicit Replayer(const ReplayOptions& options);

  /// Times must not go back.
  void request(const LoggedRequest& request);
  [[nodiscard]] Report finish();

 private:
  void tell_others(const Mitigation& mitigation, unsigned from);
  [[nodiscard]] std::unique_ptr<ReplayNode> make_node(unsigned index);

  ReplayOptions options_;
  RuleMatcher matcher_;
  EventQueue events_;
  std::mt19937_64 random_;
  Oracle oracle_;
  std::shared_ptr<MemoryCounters> counters_;
  std::vector<std::unique_ptr<ReplayNode>> nodes_;
  NodeChooser chooser_;
};

}  // namespace popgate
