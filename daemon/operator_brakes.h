// SPDX-License-Identifier: Apache-2.0
//
// What an operator asks and orders about blocking: GET and POST /enforce (docs/admin-api.md).
//
// An order is in force at once; its answer waits until the disk has taken it, so that `written` is the truth, but not
// longer than kEnforceAnswerWait.
//
// Threads: the event loop's.
// Invariants: 1. An order that is refused has changed nothing.
// Limits: as many answers wait as the admin interface has connections.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/brake_control.h"
#include "daemon/operator_orders.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr milliseconds kEnforceAnswerWait{1000};

class OperatorBrakes {
 public:
  using AnswerFunction = OperatorOrders::AnswerFunction;

  /// `mesh`: null in a PoP of one node.
  OperatorBrakes(Reactor& reactor, BrakeControl& control, const SharedRules& rules, const Publisher& publisher,
                 const Mesh* mesh);

  [[nodiscard]] nlohmann::json show() const;
  /// The answer is show()'s; 400 for an order that makes no sense, 409 for one that there is no room for.
  void order(const nlohmann::json& body, AnswerFunction answer);

 private:
  [[nodiscard]] nlohmann::json entry(BrakeSide side, const Brake& brake) const;
  [[nodiscard]] Result<RuleId> rule_named(const std::string& name) const;
  [[nodiscard]] Result<Brakes::Order> order_of(const nlohmann::json& body) const;
  void answer_waiting();

  struct Waiting {
    AnswerFunction answer;
    HostInstant until;
  };
  Reactor& reactor_;
  BrakeControl& control_;
  const SharedRules& rules_;
  const Publisher& publisher_;
  const Mesh* mesh_;
  std::vector<Waiting> waiting_;
  Timer poll_;
};

}  // namespace popgate
