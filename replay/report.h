// SPDX-License-Identifier: Apache-2.0
//
// What a replay found out, as a table for people and as JSON for programs. docs/replay.md defines every figure.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/distribution.h"

namespace popgate {

struct RuleReport {
  std::string name;
  std::uint64_t limit = 0;
  double window_s = 0;
  double mitigate_s = 0;
  bool log_only = false;
  std::string policy = "estimate";
  std::uint64_t hits = 0;               // cost recorded
  std::uint64_t keys = 0;               // distinct clients (keys) that had a hit
  std::uint64_t keys_over = 0;          // of these, whose exact count ever went above the limit
  std::uint64_t keys_mitigated = 0;     // of these, mitigated at least once
  std::uint64_t mitigations = 0;        // decisions on a key that was not mitigated
  std::uint64_t false_mitigations = 0;  // of these, where the exact count had not gone above the limit
  std::uint64_t crossings = 0;          // times an exact count went above the limit
  std::uint64_t missed_crossings = 0;   // of these, without any mitigation
  std::uint64_t blocked = 0;            // checks of this rule that found a mitigation
  std::uint64_t wrongly_blocked = 0;    // of these, under a false mitigation
  std::uint64_t wrongly_passed = 0;     // requests that passed above the limit
  Distribution overshoot;               // cost admitted above the limit, per crossing
};

/// The nodes' account of the hits, over all nodes and rules.
struct LedgerReport {
  std::uint64_t recorded = 0;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t expired = 0;
};

/// What a live run says about itself.
struct LiveReport {
  double speed_up = 0;
  double seconds = 0;
  Distribution send_delay_s;          // how much later than planned requests were sent
  std::uint64_t not_sent = 0;         // planned, but the run was ended before
  std::uint64_t checks_detached = 0;  // checks without a daemon
  std::uint64_t hits_recorded = 0;    // as libclient counted them
  std::uint64_t hits_dropped = 0;     // the ring was full
  bool interrupted = false;
};

struct Report {
  std::string mode;  // "offline", "live"
  std::uint64_t nodes = 0;
  std::uint64_t requests = 0;
  std::uint64_t requests_matched = 0;  // that fell under any rule
  std::uint64_t hits = 0;
  std::uint64_t clients = 0;
  std::uint64_t clients_blocked = 0;
  std::vector<std::uint64_t> clients_blocked_by_node;
  std::vector<std::uint64_t> requests_blocked_by_node;
  std::uint64_t blocked = 0;
  std::uint64_t wrongly_blocked = 0;
  std::uint64_t wrongly_passed = 0;
  std::uint64_t ideal_blocked = 0;  // what a limiter without delay would have blocked
  std::uint64_t passed_but_ideal_blocks = 0;
  std::uint64_t blocked_but_ideal_passes = 0;
  Distribution estimate_error_at_decisions;   // |estimate - exact| / exact
  Distribution estimate_error_at_judgements;  // the same, at every judgement with an exact count above 0
  std::uint64_t judgements = 0;
  std::uint64_t lo_above_exact = 0;  // must be 0: the lower end of the bracket
  Distribution time_to_decision_s;   // from crossing to the first decision
  Distribution time_to_enforced_s;   // from crossing to enforced on every node
  std::uint64_t crossings_not_enforced_everywhere = 0;
  LedgerReport ledger;  // offline only
  LiveReport live;      // live only
  std::vector<RuleReport> rules;

  [[nodiscard]] double wrong_share() const;
  [[nodiscard]] double ideal_difference_share() const;
};

[[nodiscard]] std::string report_table(const Report& report);
/// One object; additional members from the caller (log, run) are put beside these.
[[nodiscard]] std::string report_json(const Report& report);

}  // namespace popgate
