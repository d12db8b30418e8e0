// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/brake_orders.h"

namespace popgate::simulation {

Brakes::Order BrakeOrders::draw_for(Node& node) {
  Brakes::Order order{.side = chance(random_, 0.5) ? BrakeSide::kPop : BrakeSide::kNode};
  const Brakes::Registers& held = node.pipeline().brakes().brakes().registers(order.side);
  const std::vector<Rule>& rules = pop_.rules().all();
  const std::uint64_t scope = draw(random_, 0, rules.size());
  order.rule = scope == rules.size() ? kEveryRule : rules[static_cast<std::size_t>(scope)].id;
  const auto same = held.find(order.rule);
  order.off = same == held.end() || !same->second.off || chance(random_, 0.1);  // told twice
  order.reason = "simulated";
  return order;
}

void BrakeOrders::give(Node& node, const Brakes::Order& order) {
  if (!node.is_running()) return;
  node.process().post([this, &node, order] { check_.order(node, order); });
}

std::string BrakeOrders::text_of(const Node& node, const Brakes::Order& order) {
  return node.name() + " is told: blocking " + (order.off ? "off" : "on") + " for " +
         (order.rule == kEveryRule ? "everything" : "rule " + std::to_string(order.rule)) +
         (order.side == BrakeSide::kPop ? " in the PoP" : "");
}

}  // namespace popgate::simulation
