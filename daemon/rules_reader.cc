// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules_reader.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "daemon/duration.h"
#include "daemon/match_reader.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {
namespace {

constexpr milliseconds kMitigateMin{100};  // shorter ones end before every node has heard of them

constexpr std::pair<std::string_view, Action> kActions[] = {{"block", Action::kBlock}, {"log", Action::kLog}};
constexpr std::pair<std::string_view, CountMode> kCounts[] = {{"allowed", CountMode::kAllowed},
                                                              {"all", CountMode::kAll}};
constexpr std::pair<std::string_view, Policy> kPolicies[] = {
    {"estimate", Policy::kEstimate}, {"certain", Policy::kCertain}, {"cautious", Policy::kCautious}};

constexpr std::pair<std::string_view, OnCounterFailure> kFailureModes[] = {
    {"local", OnCounterFailure::kLocal}, {"open", OnCounterFailure::kOpen}, {"closed", OnCounterFailure::kClosed}};

/// A slot shorter than 4 D could lie wholly within the difference of two clocks.
microseconds least_window(unsigned slots, microseconds tolerance) { return 4 * tolerance * slots; }

/// The longest window, in whole seconds, whose counters memcached still holds: W + W/k + 2D + reserve <= 30 days.
std::chrono::seconds longest_window(unsigned slots, microseconds tolerance) {
  const auto reserve = std::chrono::ceil<std::chrono::seconds>(2 * tolerance) + kFlushAgeMax + std::chrono::seconds(3);
  return (kCounterExpiryMax - reserve) * slots / (slots + 1);
}

void read_window(const Section& section, microseconds tolerance, Rule& rule) {
  microseconds window{0};
  std::uint32_t slots = kSlotsDefault;
  const bool slots_given = section.read("slots", slots);
  if (!section.read("window", window) || (section.has("slots") && !slots_given)) return;
  rule.window = WindowShape::make(window, slots, tolerance);
  if (2 * tolerance > rule.window.slot / 2) {
    section.fault("window", "at least " + duration_text(least_window(slots, tolerance)) + " with " +
                                std::to_string(slots) + " slots and a clock_tolerance of " + duration_text(tolerance) +
                                ": a slot must be four times as long as that");
  } else if (counter_expiry(rule.window) > kCounterExpiryMax) {
    section.fault("window", "at most " + duration_text(longest_window(slots, tolerance)) + " with " +
                                std::to_string(slots) + " slots: memcached holds no counter longer than " +
                                duration_text(kCounterExpiryMax));
  }
}

void read_effect(const Section& section, Rule& rule) {
  const bool limit = section.read("limit", rule.limit);
  const bool cost = section.read("cost", rule.cost);
  if (limit && cost && rule.cost > rule.limit)
    section.fault("cost", "at most the limit, " + std::to_string(rule.limit) + ": otherwise no request would pass");
  if (section.read("mitigate", rule.mitigate) && rule.mitigate.count() != 0 && rule.mitigate < kMitigateMin)
    section.fault("mitigate", allowed_text(section.option("mitigate")));
  (void)section.read_choice<Action>("action", kActions, rule.action);
  (void)section.read_choice<CountMode>("count", kCounts, rule.count);
  (void)section.read_choice<Policy>("policy", kPolicies, rule.policy);
  (void)section.read_choice<OnCounterFailure>("on_counter_failure", kFailureModes, rule.on_counter_failure);
  if (rule.policy == Policy::kCertain && rule.on_counter_failure == OnCounterFailure::kClosed)
    section.fault("on_counter_failure",
                  "local or open with policy certain: closed mitigates clients of whom nothing is certain");
  std::uint32_t share = 0;
  if (section.has("max_blocked_share") && section.read("max_blocked_share", share)) rule.max_blocked_share = share;
  (void)section.read("enabled", rule.enabled);
}

void check_fuses(const Section& section, const Rule& rule, std::size_t& fused) {
  if (rule.max_blocked_share && ++fused > kFusedRulesMax)
    section.fault("max_blocked_share", "at most " + std::to_string(kFusedRulesMax) + " rules with one");
}

class RuleNames {
 public:
  void check(const Section& section, const Rule& rule, int line) {
    const auto [place, is_new] = lines_.try_emplace(rule.name, line);
    if (!is_new)
      section.fault("name", "a name of its own: line " + std::to_string(place->second) + " has this one already");
    // Two names of one hash would share counters. Chance never makes them; someone with a computer can.
    if (is_new && !ids_.try_emplace(rule.id, line).second)
      section.fault("name", "another name: its hash is that of an earlier rule's");
  }

 private:
  std::unordered_map<std::string, int> lines_;
  std::unordered_map<RuleId, int> ids_;
};

Rule read_rule(const Section& section, microseconds tolerance) {
  Rule rule;
  read_match(section, rule.match);
  read_key(section, rule.key);
  read_window(section, tolerance, rule);
  read_effect(section, rule);
  return rule;
}

}  // namespace

std::vector<Rule> read_rules(const Section& top, milliseconds clock_tolerance) {
  std::vector<YamlValue> entries;
  if (!top.read_list("rules", entries)) return {};
  std::vector<Rule> rules;
  rules.reserve(entries.size());
  RuleNames names;
  std::size_t fused = 0;
  for (std::size_t i = 0; i < entries.size() && !top.reading().faults.full(); ++i) {
    const FieldPath path{nullptr, "rules", i};
    const Section section(top.reading(), path, entries[i], "rules[]");
    Rule rule = read_rule(section, clock_tolerance);
    const bool named = section.read("name", rule.name);
    rule.number = static_cast<RuleNumber>(i);
    identify(rule);
    check_fuses(section, rule, fused);
    if (named) names.check(section, rule, section.value("name").line());
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace popgate
