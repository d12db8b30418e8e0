// SPDX-License-Identifier: Apache-2.0
//
// What an operator asks and orders about blocking: GET and POST /enforce (docs/admin-api.md).
//
// Threads: the event loop's.
// Invariants: 1. An order that is refused has changed nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/brake_control.h"
#include "daemon/result.h"

namespace popgate {

class OperatorBrakes {
 public:
  /// `mesh`: null in a PoP of one node.
  OperatorBrakes(BrakeControl& control, const SharedRules& rules, const Publisher& publisher, const Mesh* mesh)
      : control_(control), rules_(rules), publisher_(publisher), mesh_(mesh) {}

  [[nodiscard]] nlohmann::json show() const;
  /// The answer is show()'s.
  [[nodiscard]] Status order(const nlohmann::json& body);

 private:
  [[nodiscard]] nlohmann::json entry(BrakeSide side, const Brake& brake) const;
  [[nodiscard]] Result<RuleId> rule_named(const std::string& name) const;

  BrakeControl& control_;
  const SharedRules& rules_;
  const Publisher& publisher_;
  const Mesh* mesh_;
};

}  // namespace popgate
