// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules_reload.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/restart_needs.h"

namespace popgate {

RulesReload::RulesReload(const EventLoop& loop, const Config& running, Steps steps)
    : running_(running), steps_(std::move(steps)), task_(loop) {}

void RulesReload::begin(DoneFunction done) {
  if (asked_.empty()) {
    asked_.push_back(std::move(done));
    return start();
  }
  if (waiting_.size() < kReloadsWaitingMax) return waiting_.push_back(std::move(done));
  Outcome refused;
  refused.faults.push_back(std::to_string(waiting_.size()) + " reloads wait already");
  done(refused);
}

void RulesReload::start() {
  task_.start([this] { loaded_ = load_config(running_.file); }, [this] { loaded(); });
}

void RulesReload::loaded() {
  if (!loaded_.config) {
    Outcome outcome;
    for (const ConfigFault& fault : loaded_.faults) outcome.faults.push_back(fault.text());
    return conclude(std::move(outcome));
  }
  Result<SharedRules> rules = steps_.number(loaded_.config->rules);
  if (!rules) {
    Outcome outcome;
    outcome.faults.push_back(rules.error());
    return conclude(std::move(outcome));
  }
  rules_ = *std::move(rules);
  needs_restart_ = needs_restart(running_, *loaded_.config);
  loaded_.config->secrets = secrets_after_reload(running_, *loaded_.config);
  task_.start([this] { block_ = compile_rules(*rules_, loaded_.config->secrets, loaded_.config->trusted_proxies); },
              [this] { compiled(); });
}

void RulesReload::compiled() {
  Outcome outcome;
  outcome.needs_restart = std::move(needs_restart_);
  outcome.rules = rules_->all().size();
  outcome.revision = rules_->revision();
  if (Status applied = steps_.apply(*loaded_.config, rules_, block_); !applied)
    outcome.faults.push_back(applied.error());
  conclude(std::move(outcome));
}

void RulesReload::conclude(Outcome outcome) {
  loaded_ = {};
  rules_.reset();
  block_ = {};
  for (const std::string& fault : outcome.faults) spdlog::error("{}", fault);
  if (!outcome.faults.empty()) {
    spdlog::error("{} is not used, and nothing has changed", running_.file);
  } else {
    spdlog::info("reloaded {}: {} rules", running_.file, outcome.rules);
  }
  for (const std::string& name : outcome.needs_restart) spdlog::warn("{} changed and counts after a restart", name);
  for (const DoneFunction& done : std::exchange(asked_, std::exchange(waiting_, {}))) done(outcome);
  if (!asked_.empty()) start();
}

}  // namespace popgate
