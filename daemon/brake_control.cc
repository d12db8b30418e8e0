// SPDX-License-Identifier: Apache-2.0
#include "daemon/brake_control.h"

#include <spdlog/spdlog.h>

#include <unordered_set>

#include "daemon/collect/ledger.h"
#include "daemon/peers/hello.h"
#include "daemon/peers/mesh.h"
#include "daemon/printable_text.h"
#include "daemon/publish/publisher.h"
#include "daemon/rule_names.h"

namespace popgate {
namespace {

constexpr BrakeSide kSides[] = {BrakeSide::kNode, BrakeSide::kPop};

const char* scope_text(BrakeSide side) { return side == BrakeSide::kPop ? "the whole PoP" : "this node"; }

std::string words_of(const Brake& brake) {
  std::string text =
      fmt::format("ordered by {} ({})", printable_ascii(brake.ordered_by), brake_origin_name(brake.origin));
  if (!brake.reason.empty()) text += ": " + printable_ascii(brake.reason);
  return text;
}

}  // namespace

BrakeControl::BrakeControl(Setup setup)
    : setup_(std::move(setup)), brakes_(setup_.node, [this](const Brakes::Change& change) { on_change(change); }) {}

void BrakeControl::restore() {
  std::vector<std::string> notes;
  const auto rule_of = [this](RuleNumber number) {
    return setup_.ledger.has_row(number) ? setup_.ledger.row(number).rule : kEveryRule;
  };
  if (setup_.has_peers) brakes_.expect_peers();
  restoring_ = true;
  setup_.publisher.brakes().restore(brakes_, rule_of, setup_.reactor.wall_now(), notes);
  restoring_ = false;
  for (const std::string& note : notes) spdlog::error("{}", note);
  setup_.publisher.brakes().finish_restore(brakes_, *setup_.rules, setup_.reactor.host_now());
  tell_mitigations();
  tick();
}

void BrakeControl::use_rules(const RuleSet& before, const std::function<void()>& rejudge) {
  setup_.publisher.brakes().change_rules(brakes_, before, *setup_.rules);
  rejudge();
  setup_.publisher.brakes().use_rules(brakes_, *setup_.rules);
}

void BrakeControl::on_change(const Brakes::Change& change) {
  setup_.publisher.brakes().publish(brakes_, *setup_.rules, setup_.reactor.host_now());
  if (restoring_) return;
  for (const Brake& brake : change.brakes) {
    say(change.side, brake);
    if (!brake.off && setup_.on_turned_on) setup_.on_turned_on(brake.rule);
  }
  tell_mitigations();
  const bool for_peers = change.side == BrakeSide::kPop && !change.untold;
  if (for_peers && mesh_ != nullptr) mesh_->broadcast(change.brakes, change.from);
  remind_at_ = setup_.reactor.host_now() + kBrakeReminderPeriod;
}

// A daemon killed before the file says so tells it again as if nobody knew: in doubt it is off.
void BrakeControl::heard_peer() {
  const std::vector<Brake> due = brakes_.heard_peer();
  if (due.empty()) return;
  spdlog::info("a peer has been heard: {} order(s) about blocking, given before that, are told to the PoP", due.size());
  setup_.publisher.brakes().publish(brakes_, *setup_.rules, setup_.reactor.host_now());
  if (mesh_ != nullptr) mesh_->broadcast(due, 0);
}

void BrakeControl::tell_mitigations() {
  std::unordered_set<RuleId> off;
  for (const BrakeSide side : kSides) {
    for (const auto& [rule, brake] : brakes_.registers(side)) {
      if (brake.off && rule != kEveryRule) off.insert(rule);
    }
  }
  setup_.mitigations.use_turned_off(std::move(off), setup_.reactor.host_now());
}

std::string BrakeControl::what(RuleId rule) const {
  return rule == kEveryRule ? "everything" : "rule " + name_of(rule);
}

std::string BrakeControl::name_of(RuleId rule) const {
  const Rule* known = setup_.rules->by_id(rule);
  return known != nullptr ? known->name : setup_.names.name_of(rule).value_or(fmt::format("{:016x}", rule));
}

void BrakeControl::say(BrakeSide side, const Brake& brake) const {
  if (brake.off) {
    spdlog::error("BLOCKING IS OFF for {} on {}: {}. Counting goes on; `popgatectl enforce` shows it", what(brake.rule),
                  scope_text(side), words_of(brake));
    return;
  }
  const bool still_off = brakes_.is_off(brake.rule, brake.rule == kEveryRule);
  spdlog::warn("blocking is on again for {} on {}: {}{}", what(brake.rule), scope_text(side), words_of(brake),
               still_off ? "; another order keeps it OFF here" : "");
}

void BrakeControl::tick() {
  const HostInstant now = setup_.reactor.host_now();
  setup_.publisher.brakes().retry(brakes_, now);
  if (now >= remind_at_ && brakes_.any_off()) remind(now);
}

void BrakeControl::remind(HostInstant now) {
  remind_at_ = now + kBrakeReminderPeriod;
  std::string named;
  std::size_t off = 0;
  for (const BrakeSide side : kSides) {
    for (const auto& [rule, brake] : brakes_.registers(side)) {
      if (!brake.off || ++off > kBrakesNamedMax) continue;
      named += fmt::format("{}{} on {} ({})", named.empty() ? "" : "; ", what(rule), scope_text(side), words_of(brake));
    }
  }
  const std::string more = off > kBrakesNamedMax ? fmt::format(" and {} more", off - kBrakesNamedMax) : "";
  spdlog::error("BLOCKING IS STILL OFF for {}{}. `popgatectl enforce on` turns it on", named, more);
}

}  // namespace popgate
