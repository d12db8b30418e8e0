// SPDX-License-Identifier: Apache-2.0
//
// The rules as the daemon's stages use them, and their compiled form for the workers.
//
// A rule has three identities. `id` hashes its name: the rule on the wire, the same on every node. `counter_identity`
// hashes name, match, key, window and slots: keys and counters belong to it, so that they survive a changed limit.
// `revision` hashes the whole content: a mitigation remembers it, so that a changed rule judges it again.
// `number` is this node's: it names the rule in rings, ledger and table, and is stable while any of them refers to it.
//
// Threads: a RuleSet is immutable once built; stages share it.
// Invariants: 1. Names, ids and numbers are unique in a set.
//             2. Every WindowShape has 2 * tolerance <= slot / 2 and an expiry that memcached can hold (30 days).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/window.h"
#include "libclient/key.h"
#include "libclient/match/request.h"

namespace popgate {

enum class Action : std::uint8_t { kBlock, kLog };
/// Which figure of the bracket decides: the estimate, the lower bound or the upper one.
enum class Policy : std::uint8_t { kEstimate, kCertain, kCautious };
/// What a rule does about keys whose counters cannot be counted on: judge this node's own hits, mitigate nobody new, or
/// mitigate whoever comes.
enum class OnCounterFailure : std::uint8_t { kLocal, kOpen, kClosed };
enum class CountMode : std::uint8_t { kAllowed, kAll };
enum class PathMatch : std::uint8_t { kAny, kExact, kPrefix, kGlob };
enum class HostMatch : std::uint8_t { kAny, kExact, kSuffix };

/// Empty or kAny: every request. All that are given must hold.
struct MatchSpec {
  HostMatch host_match = HostMatch::kAny;
  std::string host;  // lower case; for kSuffix without the `*`, with its dot: ".example.com"
  PathMatch path_match = PathMatch::kAny;
  std::string path;
  std::vector<std::string> methods;  // upper case
};

struct KeyPartSpec {
  KeyPart type = KeyPart::kClientIp;
  std::string name{};  // of the header (lower case) or cookie
  std::uint8_t v4_prefix = 32;
  std::uint8_t v6_prefix = 64;
};

struct Rule {
  std::string name;
  RuleId id = 0;
  CounterIdentity counter_identity = 0;
  std::uint64_t revision = 0;
  RuleNumber number = 0;

  MatchSpec match;
  std::vector<KeyPartSpec> key;
  std::uint64_t limit = 0;  // this many hits pass in a window; the next is over
  WindowShape window;
  milliseconds mitigate{0};  // 0: throttle, block only until the rate is back under the limit
  Action action = Action::kBlock;
  CountMode count = CountMode::kAllowed;
  std::uint32_t cost = 1;
  Policy policy = Policy::kEstimate;
  OnCounterFailure on_counter_failure = OnCounterFailure::kLocal;
  std::optional<std::uint32_t> max_blocked_share{};  // percent of the PoP's requests; beyond it the fuse blows
  bool enabled = true;
};

/// Rules with a max_blocked_share: each costs some bytes in every heartbeat.
inline constexpr std::size_t kFusedRulesMax = 64;

inline constexpr std::chrono::hours kMitigationMax{24 * 14};  // longer ones are refused; endless ones do not exist

/// Counters outlive their window by this much: the longest that a hit waits between its stamp and the flush that
/// creates its counter, a daemon's restart and a slow shard included.
inline constexpr std::chrono::seconds kFlushAgeMax{10};
/// memcached reads a longer relative expiry as a date in 1970, and the counter is born expired.
inline constexpr std::chrono::seconds kCounterExpiryMax{30 * 24 * 3600};

/// The relative expiry of a counter: until its slot has left every node's window. memcached's clock has whole seconds.
[[nodiscard]] constexpr std::chrono::seconds counter_expiry(const WindowShape& shape) {
  return std::chrono::ceil<std::chrono::seconds>(shape.window + shape.slot + 2 * shape.tolerance) + kFlushAgeMax +
         std::chrono::seconds(1);
}

class RuleSet {
 public:
  RuleSet() : RuleSet(std::vector<Rule>{}) {}
  explicit RuleSet(std::vector<Rule> rules);

  [[nodiscard]] const Rule* by_number(RuleNumber number) const;
  [[nodiscard]] const Rule* by_id(RuleId id) const;
  [[nodiscard]] const Rule* by_name(std::string_view name) const;
  [[nodiscard]] const std::vector<Rule>& all() const { return rules_; }
  /// Those that are enabled and have a max_blocked_share; at most kFusedRulesMax.
  [[nodiscard]] std::vector<const Rule*> fused() const;
  /// Hash over all revisions in order: equal on two nodes exactly when their rules are the same.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

 private:
  std::vector<Rule> rules_;  // in the order of the configuration
  std::unordered_map<RuleNumber, std::size_t> by_number_;
  std::unordered_map<RuleId, std::size_t> by_id_;
  std::vector<std::size_t> fused_;  // places in rules_
  std::uint64_t revision_ = 0;
};

using SharedRules = std::shared_ptr<const RuleSet>;

/// As the configuration spells it.
[[nodiscard]] std::string_view policy_name(Policy policy);
[[nodiscard]] std::string_view on_counter_failure_name(OnCounterFailure what);

/// The id of the rule of that name.
[[nodiscard]] RuleId rule_id(std::string_view name);

/// Fills in id, counter_identity and revision from the rest of the rule.
void identify(Rule& rule);

/// The key of an identity that a person typed: one value for each part of the rule's key, in order. False, with a
/// reason, when a value does not fit its part (not an address, say). `-` stands for missing. Hosts, paths and methods
/// are brought to the form that the matcher gives them.
[[nodiscard]] bool key_of_values(const Rule& rule, const HashSecret& secret, const std::vector<std::string>& values,
                                 Key& out, std::string& reason);

struct AddressRange {
  ClientAddress base;
  std::uint8_t prefix_bits = 0;
};

/// The compiled form (libclient/match/rules_format.h) of the enabled rules. About 0.5 s for 300,000 rules.
[[nodiscard]] std::vector<std::byte> compile_rules(const RuleSet& rules, const HashSecrets& secrets,
                                                   const std::vector<AddressRange>& trusted_proxies);

}  // namespace popgate
