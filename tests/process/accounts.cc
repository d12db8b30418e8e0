// SPDX-License-Identifier: Apache-2.0
#include "tests/process/accounts.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace popgate::process {

Account account(const Node& node, const std::string& rule) {
  const nlohmann::json answer = node.get("/rules");
  for (const nlohmann::json& listed : answer["rules"]) {
    if (listed["name"] != rule) continue;
    const nlohmann::json& hits = listed["hits"];
    return {.recorded = hits["recorded"],
            .delivered = hits["delivered"],
            .uncertain = hits["uncertain"],
            .dropped = hits["dropped"],
            .expired = hits["expired"],
            .lost = hits["lost"],
            .pending = hits["pending"]};
  }
  throw std::runtime_error(node.name() + " has no rule " + rule);
}

Account total_account(Pop& pop, const std::string& rule) {
  Account total;
  for (std::size_t i = 0; i < pop.nodes(); ++i) {
    const Account one = account(pop.node(i), rule);
    total.recorded += one.recorded;
    total.delivered += one.delivered;
    total.uncertain += one.uncertain;
    total.dropped += one.dropped;
    total.expired += one.expired;
    total.lost += one.lost;
    total.pending += one.pending;
  }
  return total;
}

}  // namespace popgate::process
