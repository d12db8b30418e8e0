// SPDX-License-Identifier: Apache-2.0
//
// What an operator tells a node to do: block, lift, reload, ring-check. docs/admin-api.md says what each answers.
//
// Threads: the event loop's.
// Invariants: 1. An order that is refused has changed nothing; but a block for which this node's table has no room
// (507)
//                is in force on every node that has.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/operator_views.h"

namespace popgate {

class MemcachedStore;
class RingCheck;
class RulesReload;

/// A refusal with the HTTP status that fits it.
struct Refusal {
  int status = 400;
  std::string text;
  std::vector<std::string> faults{};  // of a configuration
};

class OperatorOrders {
 public:
  struct Setup {
    const OperatorViews& views;
    Mitigations& mitigations;
    const Publisher& publisher;
    MemcachedStore* memcached;  // null: counters live in the daemon
    RulesReload& reload;
  };
  /// Exactly one of both is set.
  using AnswerFunction = std::function<void(const nlohmann::json* answer, const Refusal* refusal)>;

  explicit OperatorOrders(Setup setup);
  ~OperatorOrders();

  void block(const nlohmann::json& body, const AnswerFunction& answer);
  void lift(const nlohmann::json& body, const AnswerFunction& answer);
  /// Answers later, when the file has been read.
  void reload(AnswerFunction answer);
  /// Answers later, when every probe came back or timed out.
  void ring_check(AnswerFunction answer);

 private:
  Setup setup_;
  std::unique_ptr<RingCheck> ring_check_;  // the last one; it may not be destroyed from within its callback
  AnswerFunction ring_answer_;             // of the one that runs
};

}  // namespace popgate
