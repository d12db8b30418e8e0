// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/brake_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

namespace popgate {
namespace {

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
  if (loop != nullptr) writing_ = std::make_unique<BackgroundTask>(*loop);
}

BrakeKeeper::~BrakeKeeper() {
  writing_.reset();
  if (!next_) return;
  if (const Status written = file_->write(*next_); !written) spdlog::error("{}", written.error());
}

void BrakeKeeper::restore(Brakes& brakes, const std::function<RuleId(RuleNumber)>& rule_of, PopInstant wall,
                          std::vector<std::string>& notes) {
  std::string note;
  const auto stored = file_ ? file_->load(note) : std::nullopt;
  if (!note.empty() && !stored) {
    notes.push_back(note +
                    "; what was ordered for this node is taken from the table that workers read, and what was "
                    "ordered for the PoP comes from the peers");
  }
  if (!note.empty() && stored) notes.push_back(note + "; a newer one that had not got its name yet is read");
  if (stored) {
    for (const auto& [side, brake, untold] : stored->registers) brakes.restore(side, brake, untold);
    brakes.pass(stored->stamp);
  }
  brakes.pass(table_.brakes_stamp());
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
  table_.store_brakes_stamp(brakes.stamp());  // a table that was just made is a witness from now on
}

void BrakeKeeper::publish(const Brakes& brakes, const RuleSet& rules, HostInstant now) {
  is_owed_ = restoring_;
  if (is_owed_) return;
  table_.store_brakes_stamp(brakes.stamp());
  write_brakes(table_.brakes(), brakes.effect(rules));
  write(brakes, now);
}

void BrakeKeeper::change_rules(const Brakes& brakes, const RuleSet& before, const RuleSet& rules) {
  const BrakeEffect old = brakes.effect(before);
  BrakeEffect both = brakes.effect(rules);
  both.all = both.all || old.all;
  both.rules.insert(both.rules.end(), old.rules.begin(), old.rules.end());
  std::ranges::sort(both.rules);
  both.rules.erase(std::unique(both.rules.begin(), both.rules.end()), both.rules.end());
  if (both.rules.size() > kTableRulesOffMax) both = {.all = true, .rules = {}};
  write_brakes(table_.brakes(), both);
}

void BrakeKeeper::use_rules(const Brakes& brakes, const RuleSet& rules) {
  write_brakes(table_.brakes(), brakes.effect(rules));
}

void BrakeKeeper::retry(const Brakes& brakes, HostInstant now) {
  if (!file_ || !failed_ || is_pending() || now < retry_at_) return;
  write(brakes, now);
}

void BrakeKeeper::write(const Brakes& brakes, HostInstant now) {
  if (!file_) return finish_writing(Error{"no state_dir"}, now);
  if (!writing_) return finish_writing(file_->write(file_->encode(brakes)), now);
  if (is_pending()) {
    next_ = file_->encode(brakes);
  } else {
    begin_writing(file_->encode(brakes));
  }
}

void BrakeKeeper::begin_writing(std::string bytes) {
  const auto written = std::make_shared<Status>();
  writing_->start([file = file_.get(), written, bytes = std::move(bytes)] { *written = file->write(bytes); },
                  [this, written] {
                    if (next_) return begin_writing(*std::exchange(next_, std::nullopt));
                    finish_writing(*written, HostClock::now());
                  });
}

void BrakeKeeper::finish_writing(const Status& written, HostInstant now) {
  const bool failed_before = std::exchange(failed_, !written);
  if (!failed_ && failed_before) spdlog::info("{}: orders about blocking are written again", file_->path());
  if (!failed_) return;
  retry_at_ = now + kBrakeRetryInterval;
  ++unwritten_;
  if (!log_.allow(now)) return;
  spdlog::error("{}; the order about blocking is in force, but a reboot would forget it until it can be written",
                written.error());
}

void BrakeKeeper::visit(const MetricVisitor& visitor) const {
  visitor({"popgate_publish_brakes_unwritten", "",
           "1 while the latest order to stop or go on blocking is not on disk: a reboot now would forget it.",
           is_written() ? 0.0 : 1.0, false, "", ""});
  visitor({"popgate_publish_brakes_unwritten_total", "attempts",
           "Attempts to write orders about blocking to disk that failed.", static_cast<double>(unwritten_), true, "",
           ""});
}

}  // namespace popgate
