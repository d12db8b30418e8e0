// SPDX-License-Identifier: Apache-2.0
#include "daemon/operator_orders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/count/memcached_store.h"
#include "daemon/hash_text.h"
#include "daemon/publish/publisher.h"
#include "daemon/rules_reload.h"

namespace popgate {
namespace {

using nlohmann::json;

constexpr int kBadRequest = 400;
constexpr int kConflict = 409;
constexpr int kInsufficientStorage = 507;

// A JSON field of the wrong type is refused by name instead of being taken for absent.
Result<std::optional<std::string>> text_field(const json& body, const char* name) {
  if (!body.contains(name)) return std::optional<std::string>();
  if (!body[name].is_string()) return Error{std::string(name) + ": found " + body[name].dump() + ", allowed: a string"};
  return std::optional(body[name].get<std::string>());
}

constexpr std::string_view kOrderFields[] = {"key", "rule", "values", "reason", "for_ms"};

Result<KeyName> key_name(const json& body) {
  if (!body.is_object()) return Error{"body: found " + std::string(body.type_name()) + ", allowed: a JSON object"};
  for (const auto& [field, value] : body.items()) {
    if (std::ranges::find(kOrderFields, field) == std::end(kOrderFields)) {
      return Error{"body: found the field " + json(field).dump(-1, ' ', true, json::error_handler_t::replace) +
                   ", allowed: key, rule, values, reason, for_ms"};
    }
  }
  KeyName name;
  auto key = text_field(body, "key");
  auto rule = text_field(body, "rule");
  if (!key) return Error{key.error()};
  if (!rule) return Error{rule.error()};
  name.key = *std::move(key);
  name.rule = *std::move(rule);
  if (!body.contains("values")) return name;
  if (!body["values"].is_array())
    return Error{"values: found " + body["values"].dump() + ", allowed: a list of strings"};
  for (const json& value : body["values"]) {
    if (!value.is_string()) return Error{"values: found " + value.dump() + ", allowed: a list of strings"};
    name.values.push_back(value.get<std::string>());
  }
  return name;
}

Result<microseconds> block_duration(const json& body) {
  const std::string allowed = ", allowed: whole milliseconds from 1 to " +
                              std::to_string(std::chrono::duration_cast<milliseconds>(kMitigationMax).count());
  if (!body.contains("for_ms")) return Error{"for_ms: found nothing" + allowed};
  const json& value = body["for_ms"];
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(milliseconds(kMitigationMax).count())) {
    return Error{"for_ms: found " + value.dump() + allowed};
  }
  return microseconds(milliseconds(value.get<std::int64_t>()));
}

Result<std::string> reason_of(const json& body) {
  auto reason = text_field(body, "reason");
  if (!reason) return Error{reason.error()};
  const std::string text = reason->value_or("");
  if (text.size() > kReasonBytesMax) {
    return Error{"reason: found " + std::to_string(text.size()) + " bytes, allowed: at most " +
                 std::to_string(kReasonBytesMax)};
  }
  return text;
}

std::vector<std::string> texts_of(const std::vector<Key>& keys) {
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const Key& key : keys) texts.push_back(key_text(key));
  return texts;
}

struct NamedOrder {
  NamedKey named;
  std::string reason;
};

Result<NamedOrder> named_order(const json& body, const OperatorViews& views) {
  const Result<KeyName> name = key_name(body);
  if (!name) return Error{name.error()};
  const Result<NamedKey> named = views.named_key(*name);
  if (!named) return Error{named.error()};
  Result<std::string> reason = reason_of(body);
  if (!reason) return Error{reason.error()};
  return NamedOrder{*named, *std::move(reason)};
}

// An order takes effect under all of the client's keys or is not taken.
Status check_order(const NamedKey& named, EntryKind kind, const OperatorOrders::Setup& setup) {
  const std::optional<std::string> peer = named.by_identity ? setup.views.peer_with_more_secrets() : std::nullopt;
  if (peer) {
    return Error{"node " + *peer +
                 " has a hash secret that this node does not know, and the client a key under it: give " +
                 "this order to node " + *peer};
  }
  return setup.mitigations.can_order(kind, named.keys());
}

void refuse(const OperatorOrders::AnswerFunction& answer, int status, const std::string& text) {
  const Refusal refusal{.status = status, .text = text};
  answer(nullptr, &refusal);
}

std::string no_room_text(const Key& key) {
  return "this node's table has no room for key " + key_text(key) +
         " and does not block it: peers that have room do, and it is tried again here as entries end. Raise "
         "table_entries, or lift the key";
}

}  // namespace

OperatorOrders::OperatorOrders(Setup setup) : setup_(setup) {}
OperatorOrders::~OperatorOrders() = default;

void OperatorOrders::block(const json& body, const AnswerFunction& answer) {
  const Result<NamedOrder> order = named_order(body, setup_.views);
  if (!order) return refuse(answer, kBadRequest, order.error());
  const Result<microseconds> duration = block_duration(body);
  if (!duration) return refuse(answer, kBadRequest, duration.error());
  const NamedKey& named = order->named;
  const std::vector<Key> keys = named.keys();
  const Status possible = check_order(named, EntryKind::kOperator, setup_);
  if (!possible) return refuse(answer, kConflict, possible.error());
  const PopInstant wall = PopClock::now();
  const RuleId rule = named.rule != nullptr ? named.rule->id : 0;
  for (const Key& key : keys) {
    const Status done = setup_.mitigations.block({key, rule, *duration, order->reason}, HostClock::now(), wall);
    POPGATE_ASSERT(done.ok());
    spdlog::warn("operator blocked key {} for {} ms", key_text(key), duration->count() / 1000);
  }
  for (const Key& key : keys) {
    const bool is_wanted = setup_.mitigations.enforcement(key, HostClock::now()).has_value();
    if (is_wanted && !setup_.publisher.holds(key)) return refuse(answer, kInsufficientStorage, no_room_text(key));
  }
  const json said = {{"key", key_text(named.key)}, {"keys", texts_of(keys)}, {"until", time_text(wall + *duration)}};
  answer(&said, nullptr);
}

void OperatorOrders::lift(const json& body, const AnswerFunction& answer) {
  const Result<NamedOrder> order = named_order(body, setup_.views);
  if (!order) return refuse(answer, kBadRequest, order.error());
  const std::vector<Key> keys = order->named.keys();
  const Status possible = check_order(order->named, EntryKind::kLift, setup_);
  if (!possible) return refuse(answer, kConflict, possible.error());
  const PopInstant wall = PopClock::now();
  for (const Key& key : keys) {
    const Status done = setup_.mitigations.lift({key, wall, order->reason}, HostClock::now(), wall);
    POPGATE_ASSERT(done.ok());
    spdlog::warn("operator lifted key {}", key_text(key));
  }
  const json said = {{"key", key_text(order->named.key)}, {"keys", texts_of(keys)}};
  answer(&said, nullptr);
}

void OperatorOrders::reload(AnswerFunction answer) {
  setup_.reload.begin([answer = std::move(answer)](const RulesReload::Outcome& outcome) {
    if (!outcome.faults.empty()) {
      const Refusal refusal{.status = kBadRequest,
                            .text = "the configuration is not used, and nothing has changed",
                            .faults = outcome.faults};
      return answer(nullptr, &refusal);
    }
    const json said = {
        {"rules", outcome.rules}, {"revision", hash_text(outcome.revision)}, {"needs_restart", outcome.needs_restart}};
    answer(&said, nullptr);
  });
}

void OperatorOrders::ring_check(AnswerFunction answer) {
  if (setup_.memcached == nullptr) return refuse(answer, kConflict, "counters live in this daemon: there is no ring");
  if (ring_answer_) return refuse(answer, kConflict, "another ring-check is running");
  ring_answer_ = std::move(answer);
  ring_check_ = setup_.memcached->check_ring([this](const RingCheckReport& report) {
    json shards = json::array();
    for (const RingCheckShard& shard : report.shards) {
      shards.push_back({{"name", shard.name},
                        {"agreeing", shard.agreeing},
                        {"differing", shard.differing},
                        {"unreachable", shard.unreachable},
                        {"fault", shard.fault}});
    }
    const json said = {{"agrees", report.agrees()}, {"through_proxy", report.through_proxy}, {"shards", shards}};
    std::exchange(ring_answer_, nullptr)(&said, nullptr);
  });
}

}  // namespace popgate
