// SPDX-License-Identifier: Apache-2.0
//
// Judges a rate limiter by the exact count of what it let through.
//
// It follows the history of the system under judgement: the hits that count are those that the system recorded, on
// whichever node. So a decision is compared with the truth that the system could have known, and an early mistake does
// not count as a mistake again for every request that comes after it. Beside it runs an IdealLimiter with a history of
// its own, for the other question: how far is all this from perfect?
//
//   crossing          a request passes and brings the exact count above the limit, where it was not above before
//   true mitigation   decided at d, and the exact count was above the limit at some instant of [d - lag, d] (and after
//                     the end of the key's mitigation before)
//   false mitigation  any other
//   wrongly blocked   a request blocked only by false mitigations, and that would have stayed within the limit had what
//                     they blocked before it passed; under a throttle rule (mitigate 0): one that would have kept the
//                     exact count within the limit
//   wrongly passed    a request that passed and left the exact count of a rule above its limit
//   overshoot         what passed above the limit in one crossing, until mitigated or back at the limit
//
// `lag` is what the design grants between crossing and decision: flush interval + 2 round trips + mesh delay.
//
// Threads: one thread.
// Invariants: 1. Times never go back from call to call.
// Limits: one state for each key with a hit in its window or a mitigation in force, and 16 bytes for each key ever
// seen.
//         kClientsMax clients, and keys of each rule, are told apart; further ones are not counted as distinct.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/estimate/rate.h"
#include "daemon/rules.h"
#include "libclient/match/matcher.h"
#include "replay/exact_count.h"
#include "replay/ideal_limiter.h"
#include "replay/report.h"

namespace popgate {

inline constexpr std::size_t kClientsMax = std::size_t{1} << 24;
inline constexpr unsigned kOracleNodesMax = 64;

/// One request and what the system did with it.
struct ObservedRequest {
  PopInstant time{};
  unsigned node = 0;
  std::uint64_t client = 0;  // any number that tells clients apart
  std::span<const Match> matches;
  std::uint32_t enforced = 0;  // bit i: a mitigation of matches[i] was in force at that node
};

struct ObservedDecision {
  Key key;
  RuleNumber rule = 0;
  PopInstant at{};
  PopInstant until{};
};

class Oracle {
 public:
  Oracle(SharedRules rules, unsigned nodes, microseconds lag);

  void request(const ObservedRequest& request);
  /// A node computed a key's bracket.
  void judged(const Key& key, RuleNumber rule, PopInstant now, const Rate& rate);
  /// A node decided to mitigate.
  void decided(const ObservedDecision& decision, const Rate* rate);
  /// From `now` on, `node` enforces a mitigation of the key.
  void enforced(unsigned node, const Key& key, PopInstant now);

  /// For who sees only verdicts. A block that was seen at `node`: counts as decided now unless a mitigation is in
  /// force, which then lasts at least until the block's end.
  void seen_enforced(unsigned node, const ObservedDecision& block);
  /// No block was seen: a mitigation that was to end within `slack` has ended (Retry-After is in whole seconds).
  void seen_passing(const Key& key, PopInstant now, microseconds slack);

  /// Closes what is open and gives the figures. Once.
  [[nodiscard]] Report finish();

  /// Exact count of a key, for tests.
  [[nodiscard]] std::uint64_t exact(const Key& key, PopInstant now);

 private:
  struct Crossing {
    Crossing() = default;
    explicit Crossing(PopInstant when) : open(true), at(when) {}
    bool open = false;
    bool decided = false;
    PopInstant at{};
    std::uint64_t overshoot = 0;
    std::uint64_t nodes_enforcing = 0;  // one bit a node
  };
  /// Distinct keys of a rule; they outlive the states, which are swept out.
  struct RuleKeys {
    std::unordered_set<Key, KeyHash> seen, over, mitigated;
  };
  struct State {
    State(ExactCount count, RuleNumber number) : exact(std::move(count)), rule(number) {}
    ExactCount exact;
    RuleNumber rule;
    PopInstant mitigated_until = PopInstant::min();
    std::optional<ExactCount> unblocked;  // under a false mitigation: the count had it not been
    Crossing crossing;
  };

  [[nodiscard]] State* state_of(const Key& key, RuleNumber rule);
  [[nodiscard]] RuleReport& report_of(RuleNumber rule) { return report_.rules[rule_index_.at(rule)]; }
  [[nodiscard]] RuleKeys& keys_of(RuleNumber rule) { return rule_keys_[rule_index_.at(rule)]; }
  /// Whether the request was blocked, and whether any of what blocked it was right.
  struct Blocking {
    bool blocked = false;
    bool rightly = false;
  };
  [[nodiscard]] Blocking judge_blocking(const ObservedRequest& request);
  [[nodiscard]] bool record_hits(const ObservedRequest& request, bool blocked);
  [[nodiscard]] std::uint64_t all_nodes() const { return ~std::uint64_t{0} >> (kOracleNodesMax - nodes_); }
  [[nodiscard]] bool is_wrong_block(State& state, const Rule& rule, PopInstant now);
  [[nodiscard]] bool passes_above(State& state, const Key& key, const Rule& rule, PopInstant now);
  void close(State& state);
  void count_clients(const ObservedRequest& request, bool blocked);
  void sweep(PopInstant now);

  SharedRules rules_;
  unsigned nodes_;
  microseconds lag_;
  IdealLimiter ideal_;
  std::unordered_map<Key, State, KeyHash> keys_;
  std::size_t sweep_at_ = 65536;
  std::unordered_set<std::uint64_t> clients_, blocked_clients_;
  std::vector<std::unordered_set<std::uint64_t>> blocked_clients_by_node_;
  Report report_;
  std::vector<RuleKeys> rule_keys_;  // as report_.rules
  std::unordered_map<RuleNumber, std::size_t> rule_index_;
};

}  // namespace popgate
