// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/brake_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace popgate {
namespace {

// What is off in either. May be more than the words can tell one by one: then what is off already stays so by itself.
BrakeEffect off_in_either(const BrakeEffect& now, const BrakeEffect& wanted) {
  BrakeEffect either{.all = now.all || wanted.all, .rules = {}};
  std::ranges::set_union(now.rules, wanted.rules, std::back_inserter(either.rules));
  if (either.rules.size() > kTableRulesOffMax) return {.all = true, .rules = now.rules};
  return either;
}

// What is off for everything is not asked: it may go on again, and a rule that was off must not go on with it.
bool is_off_by_itself(const Brakes& brakes, RuleId rule) {
  return std::ranges::any_of(std::array{BrakeSide::kNode, BrakeSide::kPop}, [&](BrakeSide side) {
    const Brake* brake = brakes.find(side, rule);
    return brake != nullptr && brake->off;
  });
}

}  // namespace

BrakeKeeper::BrakeKeeper(TableFile& table, std::unique_ptr<BrakeFile> file, const EventLoop* loop)
    : table_(table), file_(std::move(file)) {
  if (loop != nullptr) syncing_ = std::make_unique<BackgroundTask>(*loop);
}

void BrakeKeeper::restore(Brakes& brakes, const std::function<RuleId(RuleNumber)>& rule_of, PopInstant wall,
                          std::vector<std::string>& notes) {
  std::string note;
  const auto stored = file_ ? file_->load(note) : std::nullopt;
  if (!note.empty()) {
    notes.push_back(note +
                    "; what was ordered for this node is taken from the table that workers read, and what was "
                    "ordered for the PoP comes from the peers");
  }
  if (stored) {
    for (const auto& [side, brake] : stored->registers) brakes.restore(side, brake);
  }
  if (table_.brakes_stamp() <= (stored ? stored->stamp : 0)) return;
  restoring_ = true;
  const BrakeEffect witness = read_brakes(table_.brakes());
  const auto recover = [&](RuleId rule, const std::string& what) {
    if (is_off_by_itself(brakes, rule)) return;
    const Status ordered = brakes.order({.side = BrakeSide::kNode,
                                         .rule = rule,
                                         .off = true,
                                         .origin = BrakeOrigin::kRecovered,
                                         .reason = "the daemon before had turned it off, and no file says more"},
                                        wall);
    notes.push_back(what + " was off in the table and no file explains it: " +
                    (ordered ? "it stays off until an operator turns it on" : ordered.error()));
  };
  if (witness.all) recover(kEveryRule, "all blocking");
  for (const RuleNumber number : witness.rules) {
    if (const RuleId rule = rule_of(number); rule != kEveryRule) recover(rule, "rule number " + std::to_string(number));
  }
}

void BrakeKeeper::finish_restore(const Brakes& brakes, const RuleSet& rules, HostInstant now) {
  restoring_ = false;
  if (is_owed_) return publish(brakes, rules, now);
  use_rules(brakes, rules);
}

void BrakeKeeper::publish(const Brakes& brakes, const RuleSet& rules, HostInstant now) {
  is_owed_ = restoring_;
  if (is_owed_) return;
  const BrakeEffect wanted = brakes.effect(rules);
  write_brakes(table_.brakes(), off_in_either(read_brakes(table_.brakes()), wanted));
  write(brakes, now);
  write_brakes(table_.brakes(), wanted);
  table_.store_brakes_stamp(brakes.stamp());
}

void BrakeKeeper::use_rules(const Brakes& brakes, const RuleSet& rules) {
  write_brakes(table_.brakes(), brakes.effect(rules));
}

void BrakeKeeper::write(const Brakes& brakes, HostInstant now) {
  const Status status = file_ ? file_->write(brakes) : Status(Error{"no state_dir"});
  written_ = status.ok();
  if (written_) return sync();
  ++unwritten_;
  if (log_.allow(now))
    spdlog::error("{}; the order about blocking is in force but a reboot would forget it", status.error());
}

void BrakeKeeper::sync() {
  if (!syncing_) return;
  sync_again_ = syncing_->is_running();
  if (sync_again_) return;
  syncing_->start([path = file_->path()] { sync_to_disk(path); },
                  [this] {
                    if (sync_again_) sync();
                  });
}

void BrakeKeeper::visit(const MetricVisitor& visitor) const {
  visitor({"popgate_publish_brakes_unwritten_total", "orders",
           "Orders to stop or go on blocking that could not be written to disk.", static_cast<double>(unwritten_), true,
           "", ""});
}

}  // namespace popgate
