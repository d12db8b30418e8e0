// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/brakes.h"

#include <algorithm>
#include <utility>

#include "libclient/check/table_format.h"

namespace popgate {
namespace {

constexpr BrakeSide kSides[] = {BrakeSide::kNode, BrakeSide::kPop};
constexpr std::string_view kSideNames[] = {"node", "pop"};

// A clock that is absurdly ahead says nothing: no peer would take its stamp, nor any later one.
std::uint64_t stamp_at(PopInstant wall) {
  const auto stamp = static_cast<std::uint64_t>(std::max<std::int64_t>(0, wall.time_since_epoch().count()));
  return stamp > kBrakeStampMax ? 0 : stamp;
}

}  // namespace

Brakes::Brakes(std::string node_name, OnChange on_change)
    : node_name_(std::move(node_name)), node_(node_id(node_name_)), on_change_(std::move(on_change)) {}

Status Brakes::order(const Order& order, PopInstant wall) {
  Brake brake{.rule = order.rule,
              .off = order.off,
              .version = {std::max(stamp_ + 1, stamp_at(wall)), node_},
              .origin = order.origin,
              .ordered_at = wall,
              .ordered_by = node_name_,
              .reason = order.reason.substr(0, kReasonBytesMax)};
  if (!put(order.side, brake)) {
    ++counts_.refused;
    return Error{std::to_string(kBrakesMax) +
                 " rules are off by themselves, no more can be; `enforce off` without a "
                 "rule turns everything off"};
  }
  const bool untold = order.side == BrakeSide::kPop && awaiting_;
  if (untold) untold_.insert(order.rule);
  ++counts_.ordered;
  on_change_({order.side, std::span(&brake, 1), 0, untold});
  return {};
}

void Brakes::merge(std::span<const Brake> brakes, NodeId from) {
  std::vector<Brake> changed;
  std::vector<Brake> kept;
  for (const Brake& brake : brakes) {
    const Brake* held = find(BrakeSide::kPop, brake.rule);
    if (held != nullptr && !stands_over(brake, *held)) {
      ++counts_.unchanged;
    } else if (brake.version.stamp > kBrakeStampMax) {
      ++counts_.refused;
    } else if (held != nullptr && is_in_doubt(*held, brake)) {
      pass(brake.version.stamp);
      kept.push_back(given_anew(*held));
      ++counts_.kept;
    } else if (!put(BrakeSide::kPop, brake)) {
      ++counts_.refused;
    } else {
      ++counts_.merged;
      changed.push_back(brake);
    }
  }
  if (!changed.empty()) on_change_({BrakeSide::kPop, changed, from});
  if (!kept.empty()) on_change_({BrakeSide::kPop, kept, 0, true});
}

bool Brakes::is_in_doubt(const Brake& held, const Brake& peers) const {
  return held.off && !peers.off && untold_.contains(held.rule);
}

// The same order, past everything that is known by now.
Brake Brakes::given_anew(Brake held) {
  held.version = {stamp_ + 1, node_};
  if (!put(BrakeSide::kPop, held)) POPGATE_ASSERT(false);  // it takes its own place
  untold_.insert(held.rule);
  return held;
}

std::vector<Brake> Brakes::heard_peer() {
  awaiting_ = false;
  std::vector<Brake> due;
  for (const RuleId rule : std::set(untold_)) {
    const Brake& untold = *find(BrakeSide::kPop, rule);
    due.push_back(untold.off && untold.version.stamp < stamp_ ? given_anew(untold) : untold);
  }
  untold_.clear();
  return due;
}

std::vector<Brake> Brakes::told() const {
  std::vector<Brake> told;
  for (const auto& [rule, brake] : registers(BrakeSide::kPop)) {
    if (!untold_.contains(rule)) told.push_back(brake);
  }
  return told;
}

void Brakes::restore(BrakeSide side, const Brake& brake, bool untold) {
  const Brake* held = find(side, brake.rule);
  if (held != nullptr && !stands_over(brake, *held)) return;
  if (!put(side, brake)) return;  // a file holds no more than there is room
  if (untold && side == BrakeSide::kPop && awaiting_) untold_.insert(brake.rule);
}

void Brakes::pass(std::uint64_t stamp) {
  if (stamp <= kBrakeStampMax) stamp_ = std::max(stamp_, stamp);
}

bool Brakes::put(BrakeSide side, const Brake& brake) {
  Registers& registers = registers_[static_cast<int>(side)];
  auto place = registers.find(brake.rule);
  if (place == registers.end()) {
    if (brake.rule != kEveryRule && !make_room(side)) return false;
  } else {
    drop(side, place);
  }
  if (side == BrakeSide::kPop) digest_ += brake_hash(brake);  // wraps by intent
  pass(brake.version.stamp);
  registers.emplace(brake.rule, brake);
  return true;
}

void Brakes::drop(BrakeSide side, Registers::iterator place) {
  if (side == BrakeSide::kPop) {
    digest_ -= brake_hash(place->second);
    untold_.erase(place->first);
  }
  registers_[static_cast<int>(side)].erase(place);
}

// The order for everything always has room.
bool Brakes::make_room(BrakeSide side) {
  Registers& registers = registers_[static_cast<int>(side)];
  if (registers.size() < kBrakesMax + registers.count(kEveryRule)) return true;
  auto oldest = registers.end();
  for (auto it = registers.begin(); it != registers.end(); ++it) {
    if (it->second.off || it->first == kEveryRule) continue;
    if (oldest == registers.end() || it->second.version < oldest->second.version) oldest = it;
  }
  if (oldest == registers.end()) return false;
  ++counts_.forgotten;
  drop(side, oldest);
  return true;
}

const Brake* Brakes::find(BrakeSide side, RuleId rule) const {
  const auto found = registers(side).find(rule);
  return found == registers(side).end() ? nullptr : &found->second;
}

bool Brakes::is_off(RuleId rule, bool by_operator) const {
  for (const BrakeSide side : kSides) {
    const Brake* all = find(side, kEveryRule);
    const Brake* one = by_operator || rule == kEveryRule ? nullptr : find(side, rule);
    if ((all != nullptr && all->off) || (one != nullptr && one->off)) return true;
  }
  return false;
}

bool Brakes::is_off_by_itself(RuleId rule) const {
  return std::ranges::any_of(kSides, [&](BrakeSide side) {
    const Brake* one = find(side, rule);
    return one != nullptr && one->off;
  });
}

bool Brakes::any_off() const {
  return std::ranges::any_of(kSides, [&](BrakeSide side) {
    return std::ranges::any_of(registers(side), [](const auto& one) { return one.second.off; });
  });
}

BrakeEffect Brakes::effect(const RuleSet& rules) const {
  BrakeEffect effect{.all = is_off(kEveryRule, true), .rules = {}};
  for (const BrakeSide side : kSides) {
    for (const auto& [id, brake] : registers(side)) {
      const Rule* rule = brake.off && id != kEveryRule ? rules.by_id(id) : nullptr;
      if (rule != nullptr) effect.rules.push_back(rule->number);
    }
  }
  std::ranges::sort(effect.rules);
  effect.rules.erase(std::unique(effect.rules.begin(), effect.rules.end()), effect.rules.end());
  if (effect.rules.size() <= kTableRulesOffMax) return effect;
  return {.all = true, .rules = {}};
}

void Brakes::visit(const MetricVisitor& visitor) const {
  for (const BrakeSide side : kSides) {
    const std::string_view name = kSideNames[static_cast<int>(side)];
    const Brake* all = find(side, kEveryRule);
    const bool all_off = all != nullptr && all->off;
    const auto rules_off = std::ranges::count_if(
        registers(side), [](const auto& one) { return one.second.off && one.first != kEveryRule; });
    visitor({"popgate_enforcement_off", "", "1 while blocking is turned off for everything, by whom it was ordered for",
             all_off ? 1.0 : 0.0, false, "scope", name});
    visitor({"popgate_enforcement_off_rules", "rules", "Rules that only log because they were turned off, by scope",
             static_cast<double>(rules_off), false, "scope", name});
  }
  visitor({"popgate_enforcement_untold", "orders",
           "Orders for the PoP that no peer was told, because none was heard since this daemon started",
           static_cast<double>(untold_.size()), false, "", ""});
  const std::pair<std::string_view, std::pair<std::string_view, std::uint64_t>> rows[] = {
      {"popgate_enforcement_orders_total", {"Orders to stop or go on blocking given on this node", counts_.ordered}},
      {"popgate_enforcement_merged_total", {"Peers' orders that changed what holds here", counts_.merged}},
      {"popgate_enforcement_unchanged_total", {"Peers' orders that were known or older", counts_.unchanged}},
      {"popgate_enforcement_kept_total",
       {"Own orders to stop that no peer knew yet, kept though a peer had a newer one to go on", counts_.kept}},
      {"popgate_enforcement_refused_total", {"Orders refused: no room, or a stamp absurdly ahead", counts_.refused}},
      {"popgate_enforcement_forgotten_total", {"Old orders to go on, forgotten for room", counts_.forgotten}},
  };
  for (const auto& [name, row] : rows) {
    visitor({name, "orders", row.first, static_cast<double>(row.second), true, "", ""});
  }
}

}  // namespace popgate
