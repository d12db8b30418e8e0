// SPDX-License-Identifier: Apache-2.0
#include "daemon/operator_brakes.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/hash_text.h"
#include "daemon/operator_views.h"
#include "daemon/peers/mesh.h"
#include "daemon/publish/publisher.h"

namespace popgate {
namespace {

using nlohmann::json;

constexpr BrakeSide kSides[] = {BrakeSide::kPop, BrakeSide::kNode};
constexpr milliseconds kDiskPoll{2};
constexpr int kBadRequest = 400;
constexpr int kConflict = 409;
constexpr std::string_view kFields[] = {"state", "rule", "pop", "reason"};

std::string shown(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

// Every field is known and of its type; which are missing is looked at later.
Status check_fields(const json& body) {
  if (!body.is_object()) return Error{"body: found " + std::string(body.type_name()) + ", allowed: a JSON object"};
  for (const auto& [field, value] : body.items()) {
    if (std::ranges::find(kFields, field) == std::end(kFields)) {
      return Error{"body: found the field " + shown(field) + ", allowed: state, rule, pop, reason"};
    }
    const bool fits = field == "pop" ? value.is_boolean() : value.is_string();
    if (!fits) {
      return Error{field + ": found " + shown(value) + ", allowed: " + (field == "pop" ? "true, false" : "a string")};
    }
  }
  const std::string reason = body.value("reason", "");
  if (reason.size() > kReasonBytesMax) {
    return Error{"reason: found " + std::to_string(reason.size()) + " bytes, allowed: at most " +
                 std::to_string(kReasonBytesMax)};
  }
  const std::string state = body.value("state", "");
  if (state != "on" && state != "off") return Error{"state: found " + shown(state) + ", allowed: \"on\", \"off\""};
  return {};
}

}  // namespace

OperatorBrakes::OperatorBrakes(Reactor& reactor, BrakeControl& control, const SharedRules& rules,
                               const Publisher& publisher, const Mesh* mesh)
    : reactor_(reactor), control_(control), rules_(rules), publisher_(publisher), mesh_(mesh), poll_(reactor, [this] {
        answer_waiting();
      }) {}

json OperatorBrakes::entry(BrakeSide side, const Brake& brake) const {
  return {{"scope", side == BrakeSide::kPop ? "pop" : "node"},
          {"rule", brake.rule == kEveryRule ? json(nullptr) : json(control_.name_of(brake.rule))},
          {"off", brake.off},
          {"told", !control_.brakes().is_untold(side, brake.rule)},
          {"origin", brake_origin_name(brake.origin)},
          {"ordered_by", brake.ordered_by},
          {"ordered_at", time_text(brake.ordered_at)},
          {"reason", brake.reason}};
}

json OperatorBrakes::show() const {
  const Brakes& brakes = control_.brakes();
  json listed = json::array();
  for (const bool off : {true, false}) {
    for (const BrakeSide side : kSides) {
      for (const auto& [rule, brake] : brakes.registers(side)) {
        if (brake.off == off) listed.push_back(entry(side, brake));
      }
    }
  }
  json peers = json::array();
  if (mesh_ != nullptr) {
    for (const PeerStatus& peer : mesh_->status().peers) {
      peers.push_back({{"node", peer.name},
                       {"heard", peer.heard},
                       {"equal", peer.brakes_equal ? json(*peer.brakes_equal) : json(nullptr)}});
    }
  }
  return {{"blocking", !brakes.is_off(kEveryRule, true)},
          {"any_off", brakes.any_off()},
          {"written", publisher_.brakes().is_written()},
          {"orders", listed},
          {"peers", peers}};
}

// One that this node does not have may be turned on and off as long as somebody has ordered about it.
Result<RuleId> OperatorBrakes::rule_named(const std::string& name) const {
  if (const Rule* rule = rules_->by_name(name); rule != nullptr) return rule->id;
  const Brakes& brakes = control_.brakes();
  for (const BrakeSide side : kSides) {
    for (const auto& [rule, brake] : brakes.registers(side)) {
      if (rule != kEveryRule && (rule == rule_id(name) || hash_text(rule) == name)) return rule;
    }
  }
  return Error{"rule: found " + shown(name) + ", allowed: the name of a rule of this node, or one that is listed here"};
}

Result<Brakes::Order> OperatorBrakes::order_of(const json& body) const {
  if (Status checked = check_fields(body); !checked) return Error{checked.error()};
  RuleId rule = kEveryRule;
  if (body.contains("rule")) {
    const Result<RuleId> named = rule_named(body["rule"].get<std::string>());
    if (!named) return Error{named.error()};
    rule = *named;
  }
  return Brakes::Order{.side = body.value("pop", false) ? BrakeSide::kPop : BrakeSide::kNode,
                       .rule = rule,
                       .off = body["state"] == "off",
                       .origin = BrakeOrigin::kOperator,
                       .reason = body.value("reason", "")};
}

void OperatorBrakes::order(const json& body, AnswerFunction answer) {
  const auto refuse = [&](int status, const std::string& text) {
    const Refusal refusal{.status = status, .text = text};
    answer(nullptr, &refusal);
  };
  const Result<Brakes::Order> order = order_of(body);
  if (!order) return refuse(kBadRequest, order.error());
  if (const Status ordered = control_.order(*order); !ordered) return refuse(kConflict, ordered.error());
  waiting_.push_back({std::move(answer), reactor_.host_now() + kEnforceAnswerWait});
  answer_waiting();
}

void OperatorBrakes::answer_waiting() {
  const bool is_pending = publisher_.brakes().is_pending();
  const HostInstant now = reactor_.host_now();
  const auto due = std::partition(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return is_pending && now < one.until; });
  const std::vector<Waiting> answered(std::make_move_iterator(due), std::make_move_iterator(waiting_.end()));
  waiting_.erase(due, waiting_.end());
  const json said = answered.empty() ? json() : show();
  for (const Waiting& one : answered) one.answer(&said, nullptr);
  if (!waiting_.empty()) poll_.start_once(kDiskPoll);
}

}  // namespace popgate
