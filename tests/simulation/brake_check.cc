// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/brake_check.h"

#include <algorithm>

namespace popgate::simulation {
namespace {

constexpr BrakeSide kSides[] = {BrakeSide::kNode, BrakeSide::kPop};

std::string text_of(BrakeSide side, RuleId scope) {
  return std::string(side == BrakeSide::kPop ? "the PoP" : "the node") + " about " +
         (scope == kEveryRule ? "everything" : "rule " + std::to_string(scope));
}

bool is_log_only(const TableAnswer& answer) { return (answer.flags & kTableFlagLogOnly) != 0; }
bool is_operators(const TableAnswer& answer) { return (answer.flags & kTableFlagOperator) != 0; }

// Every total that the store knows of the keys in the set, as one number.
std::uint64_t hash_of_counters(Node& node) {
  std::uint64_t hash = 0;
  node.pipeline().mitigations().for_each({.kind = {}, .rule = {}, .ended = true}, [&](const Mitigation& entry) {
    for (const SlotCount& count : node.pipeline().store().slots_of(entry.key)) {
      std::uint64_t one = static_cast<std::uint64_t>(count.slot) ^ entry.key.lo;
      for (const std::uint64_t value : {count.known, count.unsent, count.hidden})
        one = (one ^ value) * 1'099'511'628'211;
      hash += one;
    }
  });
  return hash;
}

}  // namespace

const BrakeCheck::Registers& BrakeCheck::registers_of(Node& node, BrakeSide side) {
  return node.pipeline().brakes().brakes().registers(side);
}

bool BrakeCheck::is_off(const Told& told, RuleId scope) {
  return std::ranges::any_of(told.registers, [&](const Registers& registers) {
    const auto found = registers.find(scope);
    return found != registers.end() && found->second.off;
  });
}

void BrakeCheck::order(Node& node, const Brakes::Order& order) {
  Mitigations& set = node.pipeline().mitigations();
  const auto before = std::pair(set.digest(), hash_of_counters(node));
  if (!node.pipeline().brakes().order(order)) return pop_.broken("brakes", "an order was refused");
  if (before != std::pair(set.digest(), hash_of_counters(node))) {
    return pop_.broken("brakes", "an order on " + node.name() + " changed mitigations or counters");
  }
  const auto held = registers_of(node, order.side).find(order.rule);
  if (held == registers_of(node, order.side).end() || held->second.off != order.off) {
    return pop_.broken("brakes", "an order on " + node.name() + " did not come to stand");
  }
  given_.insert(given(order.side, held->second));
  Told& told = told_[node.host()];
  look_at_registers(node, told);
  look_at_workers(node, told);
  if (order.side == BrakeSide::kPop) expect_spread(node, order.rule);
}

void BrakeCheck::expect_spread(Node& from, RuleId scope) {
  const BrakeVersion version = registers_of(from, BrakeSide::kPop).at(scope).version;
  const std::set<HostNumber> reached = entries_.reached_from(from.host());
  pop_.world().after(EntryCheck::kSpreadWithin, [this, scope, version, reached, origin = from.host()] {
    const std::set<HostNumber> still = entries_.reached_from(origin);
    for (const HostNumber host : reached) {
      Node& node = *pop_.node_at(host);
      if (!still.contains(host) || !node.is_running()) continue;
      const auto held = registers_of(node, BrakeSide::kPop).find(scope);
      if (held != registers_of(node, BrakeSide::kPop).end() && held->second.version >= version) continue;
      pop_.broken("brakes", node.name() + " has not heard of an order to " + text_of(BrakeSide::kPop, scope));
    }
  });
}

void BrakeCheck::turn(Node& node) {
  Told& told = told_[node.host()];
  const Brakes& brakes = node.pipeline().brakes().brakes();
  const bool changed =
      told.stamp != brakes.stamp() || told.digest != brakes.digest() || told.rules != node.pipeline().rules();
  if (changed) look_at_registers(node, told);
  if (changed || ++told.turns % kTurnsBetweenLooks == 0) look_at_workers(node, told);
}

void BrakeCheck::take(Node& node, Told& told) {
  told.stamp = node.pipeline().brakes().brakes().stamp();
  told.digest = node.pipeline().brakes().brakes().digest();
  told.rules = node.pipeline().rules();
  for (const BrakeSide side : kSides) told.registers[static_cast<int>(side)] = registers_of(node, side);
}

void BrakeCheck::look_at_registers(Node& node, Told& told) {
  for (const BrakeSide side : kSides) {
    const Registers& now = registers_of(node, side);
    for (const auto& [scope, brake] : told.registers[static_cast<int>(side)]) {
      const auto held = now.find(scope);
      if (held != now.end() && !stands_over(brake, held->second)) continue;
      return pop_.broken("brakes", node.name() + " went back to an older order to " + text_of(side, scope));
    }
    for (const auto& [scope, brake] : now) {
      if (brake.origin == BrakeOrigin::kFuse) blown_.insert(brake.version);
      if (brake.origin != BrakeOrigin::kOperator || given_.contains(given(side, brake))) continue;
      return pop_.broken("brakes", node.name() + " has an order to " + text_of(side, scope) + " that nobody gave");
    }
  }
  take(node, told);
}

void BrakeCheck::look_at_workers(Node& node, const Told& told) {
  node.pipeline().mitigations().for_each({}, [&](const Mitigation& entry) {
    if (!entry.lifted && entry.until > node.machine().host_now()) look_at_entry(node, told, entry);
  });
}

void BrakeCheck::look_at_entry(Node& node, const Told& told, const Mitigation& entry) {
  const TableAnswer answer = node.look_up(entry.key);
  if (!answer.live || is_operators(answer) != (entry.space == Space::kOperator)) return;
  const Rule* const rule = told.rules->by_id(entry.rule);
  const bool logs = !is_operators(answer) && rule != nullptr && rule->action == Action::kLog;
  const bool off = is_off(told, kEveryRule) || (!is_operators(answer) && is_off(told, entry.rule));
  if (is_log_only(answer) == (logs || off)) return;
  pop_.broken("brakes", "on " + node.name() + " workers are told " + (off ? "to block" : "not to block") + " key " +
                            key_text(entry.key) + (off ? " although it is off" : " although nobody stopped it"));
}

void BrakeCheck::checked(Node& node, const Rule& rule, const TableAnswer& answer) {
  if (!answer.live) return;
  const Told& told = told_[node.host()];
  const bool off = is_off(told, kEveryRule) || (!is_operators(answer) && is_off(told, rule.id));
  if (!off) return;
  ++let_pass_;
  if (!is_log_only(answer)) {
    pop_.broken("brakes", "a worker of " + node.name() + " was told to block by " + rule.name + ", which is off there");
  }
}

void BrakeCheck::started(Node& node, bool with_records) {
  Told& told = told_[node.host()];
  if (with_records) {
    for (const BrakeSide side : kSides) {
      if (registers_of(node, side) == told.registers[static_cast<int>(side)]) continue;
      return pop_.broken("brakes", node.name() + " has not found the orders that were given before its start");
    }
  } else {
    Told found;
    take(node, found);
    for (const Registers& registers : told.registers) {
      for (const auto& [scope, brake] : registers) {
        const bool in_table = scope == kEveryRule || (told.rules != nullptr && told.rules->by_id(scope) != nullptr);
        if (!brake.off || !in_table || is_off(found, scope)) continue;
        return pop_.broken("brakes", node.name() + " forgot with its disk what its table says is off");
      }
    }
  }
  take(node, told);
  look_at_workers(node, told);
}

std::string BrakeCheck::difference() const {
  const std::uint64_t first = pop_.nodes()[0]->pipeline().brakes().brakes().digest();
  for (const auto& node : pop_.nodes()) {
    if (node->pipeline().brakes().brakes().digest() != first) {
      return node->name() + " was told something else about blocking than " + pop_.nodes()[0]->name();
    }
  }
  return {};
}

}  // namespace popgate::simulation
