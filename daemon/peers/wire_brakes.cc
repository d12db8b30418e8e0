// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/wire_brakes.h"

#include <algorithm>

#include "mesh.pb.h"

namespace popgate::wire {
namespace {

constexpr std::int64_t kInstantMost = std::int64_t{1} << 60;  // sums of two cannot overflow

using Fault = std::optional<std::string>;

Fault above(const char* field, std::uint64_t found, std::uint64_t allowed) {
  if (found <= allowed) return std::nullopt;
  return std::string(field) + ": found " + std::to_string(found) + ", allowed: at most " + std::to_string(allowed);
}

Fault take_one(const mesh::Brake& in, Brake& brake) {
  if (const Fault fault = above("brake.ordered_by bytes", in.ordered_by().size(), kNameBytesMax)) return fault;
  if (const Fault fault = above("brake.reason bytes", in.reason().size(), kReasonBytesMax)) return fault;
  brake.rule = in.rule();
  brake.off = in.off();
  brake.version = {in.stamp(), in.node()};
  // One of a later release means an operator: what is off must be turned on by one.
  brake.origin = in.origin() < kBrakeOrigins ? static_cast<BrakeOrigin>(in.origin()) : BrakeOrigin::kOperator;
  brake.ordered_at = PopInstant(microseconds(std::clamp(in.ordered_at_us(), -kInstantMost, kInstantMost)));
  brake.ordered_by = in.ordered_by();
  brake.reason = in.reason();
  return std::nullopt;
}

}  // namespace

void put(const Brakes& brakes, mesh::Brakes& out) {
  for (const Brake& brake : brakes.brakes) {
    mesh::Brake& one = *out.add_brakes();
    one.set_rule(brake.rule);
    one.set_off(brake.off);
    one.set_stamp(brake.version.stamp);
    one.set_node(brake.version.node);
    one.set_origin(static_cast<std::uint32_t>(brake.origin));
    one.set_ordered_at_us(brake.ordered_at.time_since_epoch().count());
    one.set_ordered_by(brake.ordered_by);
    one.set_reason(brake.reason);
  }
}

void put(const NodeFigures& figures, mesh::NodeFigures& out) {
  out.set_brakes_digest(figures.brakes_digest);
  out.set_not_enforced(figures.not_enforced);
  out.set_requests(figures.requests);
  for (const RuleFigures& rule : figures.rules) {
    mesh::RuleFigures& one = *out.add_rules();
    one.set_rule(rule.rule);
    one.set_would_block(rule.would_block);
  }
}

Fault take(const mesh::Brakes& in, Brakes& brakes) {
  const auto count = static_cast<std::size_t>(in.brakes_size());
  if (const Fault fault = above("brakes", count, kBrakesInMessageMax)) return fault;
  for (const mesh::Brake& one : in.brakes()) {
    if (const Fault fault = take_one(one, brakes.brakes.emplace_back())) return fault;
  }
  return std::nullopt;
}

Fault take(const mesh::NodeFigures& in, NodeFigures& figures) {
  const auto count = static_cast<std::size_t>(in.rules_size());
  if (const Fault fault = above("figures.rules", count, kRuleFiguresMax)) return fault;
  figures.brakes_digest = in.brakes_digest();
  figures.not_enforced = in.not_enforced();
  figures.requests = in.requests();
  for (const mesh::RuleFigures& one : in.rules()) figures.rules.push_back({one.rule(), one.would_block()});
  return std::nullopt;
}

}  // namespace popgate::wire
