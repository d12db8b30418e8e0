// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules.h"

#include <utility>

#include "daemon/result.h"
#include "libclient/match/client_address.h"
#include "libclient/match/request_host.h"
#include "libclient/match/request_key.h"
#include "libclient/match/request_target.h"

namespace popgate {
namespace {

/// Content in one canonical string: every field typed by its place and length-prefixed, so that no two contents give
/// the same bytes.
class Content {
 public:
  Content& number(std::uint64_t value) {
    for (int shift = 56; shift >= 0; shift -= 8) bytes_.push_back(static_cast<char>(value >> shift & 0xff));
    return *this;
  }
  Content& text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
  }
  /// 64 bits that are the same on every node: the secret is all zeros, because a rule is no secret.
  [[nodiscard]] std::uint64_t hash(std::string_view kind) const {
    KeyBuilder builder(HashSecret{}, 0);
    builder.add(KeyPart::kCustom, kind, bytes_);
    return builder.finish().lo;
  }

 private:
  std::string bytes_;
};

void append_match(Content& content, const MatchSpec& match) {
  content.number(static_cast<std::uint64_t>(match.host_match)).text(match.host);
  content.number(static_cast<std::uint64_t>(match.path_match)).text(match.path);
  content.number(match.methods.size());
  for (const std::string& method : match.methods) content.text(method);
}

void append_key(Content& content, const std::vector<KeyPartSpec>& key) {
  content.number(key.size());
  for (const KeyPartSpec& part : key) {
    content.number(static_cast<std::uint64_t>(part.type)).text(part.name);
    // Prefixes mean nothing to other parts, whatever stands there.
    const bool address = part.type == KeyPart::kClientIp;
    content.number(address ? part.v4_prefix : 0).number(address ? part.v6_prefix : 0);
  }
}

std::uint64_t microseconds_of(microseconds time) { return static_cast<std::uint64_t>(time.count()); }

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  }
  return text;
}

/// A request can come with an empty header or cookie. An empty host, path, method or address is none; who means that
/// types `-`, so that an empty shell variable does not name all clients without an address.
bool may_be_empty(KeyPart type) { return type == KeyPart::kHeader || type == KeyPart::kCookie; }

/// One typed value, in the form that the matcher gives to what comes with a request.
bool add_typed(KeyBuilder& builder, const KeyPartSpec& part, const std::string& value, std::string& reason) {
  if (value.empty() && !may_be_empty(part.type)) {
    reason = "found an empty value, allowed: a value, or - for a request without one";
    return false;
  }
  if (value == "-") {
    builder.add_missing(part.type, part.name);
    return true;
  }
  HostBuffer host;
  PathBuffer path;
  ClientAddress client;
  switch (part.type) {
    case KeyPart::kClientIp:
      if (!parse_address(value, client)) {
        reason = "\"" + value + "\" is not an IPv4 or IPv6 address";
        return false;
      }
      add_client(builder, {part.v4_prefix, part.v6_prefix}, client);
      return true;
    case KeyPart::kHost:
      builder.add(part.type, {}, normal_host(value, host));
      return true;
    case KeyPart::kPath:
      builder.add(part.type, {}, read_target(value, path).path);
      return true;
    case KeyPart::kMethod:
      builder.add(part.type, {}, upper(value));
      return true;
    default:
      builder.add(part.type, part.name, value);
      return true;
  }
}

}  // namespace

std::string_view policy_name(Policy policy) {
  switch (policy) {
    case Policy::kEstimate:
      return "estimate";
    case Policy::kCertain:
      return "certain";
    case Policy::kCautious:
      return "cautious";
  }
  return "";
}

std::string_view on_counter_failure_name(OnCounterFailure what) {
  switch (what) {
    case OnCounterFailure::kLocal:
      return "local";
    case OnCounterFailure::kOpen:
      return "open";
    case OnCounterFailure::kClosed:
      return "closed";
  }
  return "";
}

RuleId rule_id(std::string_view name) { return Content().text(name).hash("rule name"); }

void identify(Rule& rule) {
  rule.id = rule_id(rule.name);
  Content counters;
  counters.text(rule.name);
  append_match(counters, rule.match);
  append_key(counters, rule.key);
  counters.number(microseconds_of(rule.window.window)).number(rule.window.slots);
  rule.counter_identity = counters.hash("counters of a rule");
  Content all = counters;
  all.number(rule.limit).number(microseconds_of(rule.mitigate));
  all.number(static_cast<std::uint64_t>(rule.action)).number(static_cast<std::uint64_t>(rule.count));
  all.number(rule.cost).number(static_cast<std::uint64_t>(rule.policy)).number(rule.enabled ? 1 : 0);
  all.number(static_cast<std::uint64_t>(rule.on_counter_failure));
  all.number(rule.max_blocked_share.value_or(0));
  rule.revision = all.hash("revision of a rule");
}

RuleSet::RuleSet(std::vector<Rule> rules) : rules_(std::move(rules)) {
  by_number_.reserve(rules_.size());
  by_id_.reserve(rules_.size());
  Content revisions;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const bool new_number = by_number_.emplace(rules_[i].number, i).second;
    const bool new_id = by_id_.emplace(rules_[i].id, i).second;
    POPGATE_ASSERT(new_number && new_id);
    revisions.number(rules_[i].revision);
    const bool fused = rules_[i].enabled && rules_[i].max_blocked_share;
    if (fused && fused_.size() < kFusedRulesMax) fused_.push_back(i);
  }
  revision_ = revisions.hash("revision of all rules");
}

std::vector<const Rule*> RuleSet::fused() const {
  std::vector<const Rule*> fused;
  for (const std::size_t place : fused_) fused.push_back(&rules_[place]);
  return fused;
}

const Rule* RuleSet::by_number(RuleNumber number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : &rules_[found->second];
}

const Rule* RuleSet::by_id(RuleId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &rules_[found->second];
}

const Rule* RuleSet::by_name(std::string_view name) const {
  const Rule* rule = by_id(rule_id(name));
  return rule != nullptr && rule->name == name ? rule : nullptr;
}

bool key_of_values(const Rule& rule, const HashSecret& secret, const std::vector<std::string>& values, Key& out,
                   std::string& reason) {
  if (values.size() != rule.key.size()) {
    reason = "the key of rule " + rule.name + " has " + std::to_string(rule.key.size()) + " parts, not " +
             std::to_string(values.size());
    return false;
  }
  KeyBuilder builder(secret, rule.counter_identity);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!add_typed(builder, rule.key[i], values[i], reason)) return false;
  }
  out = builder.finish();
  return true;
}

}  // namespace popgate
