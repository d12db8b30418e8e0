// SPDX-License-Identifier: Apache-2.0
//
// What the daemon shows an operator, as JSON: docs/admin-api.md says which fields mean what.
//
// Views only read; what changes something is in operator_orders.h.
//
// Threads: the event loop's.
// Invariants: 1. A view changes nothing.
// Limits: lists are cut at what the query asks for, 10,000 at most.
// Cost: /status, /rules and /explain walk what they show; /mitigations walks the whole set.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon/collect/workers.h"
#include "daemon/config.h"
#include "daemon/count/counter_store.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/result.h"

namespace popgate {

class Brakes;
class ClockGuard;
class Mesh;
class Publisher;
class RuleNames;
class TlsTransport;

/// The stages that are looked at. All outlive the views.
struct Stages {
  const Config& config;
  const SharedRules& rules;
  const Ledger& ledger;
  const Workers& workers;
  const CounterStore& store;
  const Mitigations& mitigations;
  const Mesh* mesh;  // null: a PoP of one node
  const Publisher& publisher;
  const ClockGuard& clock;
  const TlsTransport* tls;  // null: the mesh is plain
  const Brakes& brakes;
  const RuleNames& rule_names;
};

/// A key that an operator named, and the rule if that is known. While the secret is changed, an identity has a key
/// under each of both; one named by its digits has only that.
struct NamedKey {
  Key key;
  const Rule* rule = nullptr;
  std::optional<Key> second{};
  bool by_identity = false;  // by a rule and values

  [[nodiscard]] std::vector<Key> keys() const {
    return second ? std::vector<Key>{key, *second} : std::vector<Key>{key};
  }
};

/// How an operator names a key: by its digits, or by a rule and a value for each part of the rule's key.
struct KeyName {
  std::optional<std::string> key;
  std::optional<std::string> rule;
  std::vector<std::string> values;
};

struct MitigationsQuery {
  std::optional<std::string> rule;
  std::optional<std::string> key;
  std::optional<std::string> by;
  std::optional<std::string> kind;
  std::size_t limit = 1000;
  std::size_t offset = 0;
};

struct RulesQuery {
  std::optional<std::string> rule;
  std::size_t limit = 1000;
  std::size_t offset = 0;
};
/// More in one answer would keep the event loop away for longer than a fifth of a second.
inline constexpr std::size_t kShownMax = 10000;

/// RFC 3339 in UTC, with milliseconds.
[[nodiscard]] std::string time_text(PopInstant instant);

class OperatorViews {
 public:
  explicit OperatorViews(Stages stages, PopInstant started_at);

  [[nodiscard]] nlohmann::json status() const;
  /// What is not ready; empty when everything is.
  [[nodiscard]] std::vector<std::string> not_ready() const;
  [[nodiscard]] nlohmann::json peers() const;
  [[nodiscard]] nlohmann::json rules(const RulesQuery& query) const;
  [[nodiscard]] Result<nlohmann::json> mitigations(const MitigationsQuery& query) const;
  [[nodiscard]] Result<nlohmann::json> explain(const KeyName& name) const;

  [[nodiscard]] Result<NamedKey> named_key(const KeyName& name) const;
  /// A peer with a hash secret that this node lacks: an order by identity, given here, would reach only some of the
  /// keys.
  [[nodiscard]] std::optional<std::string> peer_with_more_secrets() const;

 private:
  [[nodiscard]] nlohmann::json entry(const Mitigation& mitigation, HostInstant now) const;
  [[nodiscard]] nlohmann::json mesh_summary() const;
  [[nodiscard]] nlohmann::json enforcement_summary() const;
  [[nodiscard]] nlohmann::json rule_name(RuleId id) const;
  [[nodiscard]] nlohmann::json slots_and_rate(const Key& key, const Rule& rule) const;
  [[nodiscard]] nlohmann::json explained(const Key& key, const Rule* rule, HostInstant now) const;

  Stages stages_;
  PopInstant started_at_;
};

}  // namespace popgate
