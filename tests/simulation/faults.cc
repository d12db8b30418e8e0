// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/faults.h"

#include <algorithm>
#include <array>

namespace popgate::simulation {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(FaultKind::kCount)> kNames{
    "partition",  "isolation",  "loss",      "delay",         "repetition",   "clog",        "node kill", "record loss",
    "node stop",  "node pause", "node slow", "shard restart", "shard outage", "shard pause", "eviction",  "no memory",
    "clock step", "lift",       "block",     "rules change",  "flood",        "brake"};

constexpr microseconds kApartLeast{500'000};
constexpr microseconds kApartMost{16'000'000};
constexpr microseconds kShortMax{1'500'000};
constexpr microseconds kLongMax{9'000'000};
constexpr std::size_t kFloodClientsMax = 60;

}  // namespace

std::string_view fault_name(FaultKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Faults::Faults(Pop& pop, Traffic& traffic, Checks checks)
    : pop_(pop),
      traffic_(traffic),
      checks_(checks),
      random_(pop.world().random_for("faults")),
      rule_changes_(pop, random_),
      brake_orders_(pop, checks.brakes, random_) {
  apart_max_ = draw(random_, kApartLeast, kApartMost);
  if (chance(random_, 0.1)) return;  // a run without faults: what holds only then must be looked at too
  if (chance(random_, 0.15)) {  // and one in which nothing but counters is lost: upper bounds are claimed all along
    allowed_ = {FaultKind::kShardRestart, FaultKind::kEviction};
    return;
  }
  for (int kind = 0; kind < static_cast<int>(FaultKind::kCount); ++kind) {
    if (chance(random_, 0.4)) allowed_.push_back(static_cast<FaultKind>(kind));
  }
}

void Faults::start(ModelInstant until) {
  if (!allowed_.empty()) next(until);
}

void Faults::next(ModelInstant until) {
  pop_.world().after(draw(random_, microseconds(1000), apart_max_), [this, until] {
    if (pop_.world().now() >= until) return;
    begin(allowed_[static_cast<std::size_t>(draw(random_, 0, allowed_.size() - 1))]);
    next(until);
  });
}

void Faults::end_later(microseconds longest, std::function<void()> end) {
  const auto fault = std::make_shared<UnderWay>();
  fault->end = std::move(end);
  under_way_.push_back(fault);
  pop_.world().after(draw(random_, microseconds(1000), longest), [this, fault] {
    if (fault->over) return;
    fault->over = true;
    fault->end();
    std::erase(under_way_, fault);
  });
}

void Faults::heal() {
  note("everything heals");
  const auto under_way = std::move(under_way_);
  under_way_.clear();
  for (const auto& fault : under_way) {
    if (fault->over) continue;
    fault->over = true;
    fault->end();
  }
}

void Faults::begin(FaultKind kind) {
  ++begun_;
  switch (kind) {
    case FaultKind::kPartition:
      return disturb_path("cut", {.cut = true}, chance(random_, 0.5));
    case FaultKind::kIsolation:
      return isolate();
    case FaultKind::kLoss:
      if (chance(random_, 0.3)) return lose_everywhere();
      return disturb_path("lossy", {.loss = static_cast<double>(draw(random_, 2, 70)) / 100}, true);
    case FaultKind::kDelay:
      return disturb_path("late", slow_path(), true);
    case FaultKind::kRepetition:
      return disturb_path("repeating", {.repeat = 0.3}, true);
    case FaultKind::kClog:
      return disturb_path("clogged", {.bytes_per_second = draw(random_, 2'000, 50'000)}, true);
    case FaultKind::kNodeKill:
      return kill(true);
    case FaultKind::kNodeRecordLoss:
      return kill(false);
    case FaultKind::kNodeStop:
      return stop_node();
    case FaultKind::kNodePause:
      return pause_node();
    case FaultKind::kNodeSlow:
      return slow_node();
    case FaultKind::kShardRestart:
    case FaultKind::kShardOutage:
    case FaultKind::kShardPause:
    case FaultKind::kEviction:
    case FaultKind::kNoMemory:
      return fault_of_shard(kind);
    case FaultKind::kClockStep:
      return step_clock(*pop_.nodes()[static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1))]);
    case FaultKind::kLift:
      return lift();
    case FaultKind::kBlock:
      return block();
    case FaultKind::kRulesChange:
      return change_rules();
    case FaultKind::kFlood:
      return flood();
    case FaultKind::kBrake:
    case FaultKind::kCount:
      return brake();
  }
}

// ---- The network ----

HostNumber Faults::any_host() {
  const std::uint64_t which = draw(random_, 0, pop_.nodes().size() + pop_.shards().size() - 1);
  return which < pop_.nodes().size() ? pop_.nodes()[which]->host() : pop_.shards()[which - pop_.nodes().size()]->host();
}

Path Faults::slow_path() {
  const microseconds delay = draw(random_, microseconds(20'000), microseconds(300'000));
  return {.delay = delay, .jitter = delay / 2};
}

void Faults::disturb_path(const std::string& what, const Path& as, bool both_ways) {
  const HostNumber a = pop_.nodes()[static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1))]->host();
  const HostNumber b = any_host();
  if (a == b) return;
  const std::string where = " between " + address_of_host(a) + " and " + address_of_host(b);
  note(what + (both_ways ? " both ways" : " one way") + where);
  pop_.conditions().disturb(a, b);
  pop_.network().path(a, b) = as;
  if (both_ways) pop_.network().path(b, a) = as;
  end_later(kLongMax, [this, a, b, what, where] {
    note("no more " + what + where);
    pop_.network().for_both(a, b, [](Path& path) { path = Path{}; });
    pop_.conditions().restore(a, b);
  });
}

void Faults::isolate() {
  Node& node = *pop_.nodes()[static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1))];
  const auto for_all = [this, host = node.host()](bool cut) {
    const auto set = [cut](Path& path) { path.cut = cut; };
    for (const auto& other : pop_.nodes()) {
      if (other->host() != host) pop_.network().for_both(host, other->host(), set);
    }
    for (const auto& shard : pop_.shards()) pop_.network().for_both(host, shard->host(), set);
  };
  note(node.name() + " is isolated");
  pop_.conditions().disturb(node.host());
  for_all(true);
  end_later(kLongMax, [this, for_all, &node] {
    for_all(false);
    note(node.name() + " is reached again");
    pop_.conditions().restore(node.host());
  });
}

void Faults::lose_everywhere() {
  const double loss = static_cast<double>(draw(random_, 2, 50)) / 100;
  note("a network that loses " + std::to_string(static_cast<int>(loss * 100)) + " %");
  const auto for_all = [this](double share) {
    for (const auto& node : pop_.nodes()) {
      for (const auto& other : pop_.nodes()) {
        if (other != node) pop_.network().path(node->host(), other->host()).loss = share;
      }
    }
  };
  for (const auto& node : pop_.nodes()) pop_.conditions().disturb(node->host());
  for_all(loss);
  end_later(kLongMax, [this, for_all] {
    for_all(0);
    note("a network that loses nothing");
    for (const auto& node : pop_.nodes()) pop_.conditions().restore(node->host());
  });
}

// ---- Nodes ----

Node* Faults::running_node() {
  std::vector<Node*> running;
  for (const auto& node : pop_.nodes()) {
    if (node->is_running() && !node->is_stopping() && !node->process().is_paused()) running.push_back(node.get());
  }
  return running.empty() ? nullptr : running[static_cast<std::size_t>(draw(random_, 0, running.size() - 1))];
}

void Faults::started(Node& node, bool with_records) {
  checks_.entries.started(node, with_records);
  checks_.retract.started(node);
  checks_.brakes.started(node, with_records);
}

void Faults::kill(bool with_records) {
  Node* const node = running_node();
  if (node == nullptr) return;
  note(node->name() + " is killed" + (with_records ? "" : ", and its disk is lost"));
  pop_.conditions().disturb_daemon(node->host());
  node->kill();
  if (!with_records) node->lose_records();
  end_later(chance(random_, 0.7) ? kShortMax : kLongMax, [this, node, with_records] {
    note(node->name() + " starts");
    if (is_allowed(FaultKind::kClockStep) && chance(random_, 0.3)) step_clock(*node);
    node->start();
    started(*node, with_records);
    pop_.conditions().restore_daemon(node->host());
  });
}

void Faults::stop_node() {
  Node* const node = running_node();
  if (node == nullptr) return;
  note(node->name() + " stops");
  pop_.conditions().disturb_daemon(node->host());
  node->stop([] {});
  end_later(kLongMax, [this, node] {
    if (node->is_running()) node->kill();  // stopped twice: the supervisor does not wait for ever
    note(node->name() + " starts");
    if (is_allowed(FaultKind::kClockStep) && chance(random_, 0.3)) step_clock(*node);
    node->start();
    started(*node, true);
    pop_.conditions().restore_daemon(node->host());
  });
}

void Faults::pause_node() {
  Node* const node = running_node();
  if (node == nullptr) return;
  note(node->name() + " is paused");
  pop_.conditions().disturb_daemon(node->host());
  node->process().pause();
  end_later(kLongMax, [this, node] {
    note(node->name() + " goes on");
    node->process().resume();
    pop_.conditions().restore_daemon(node->host());
  });
}

void Faults::slow_node() {
  Node* const node = running_node();
  if (node == nullptr) return;
  note(node->name() + " is slow");
  pop_.conditions().disturb(node->host());
  node->process().slow_down(draw(random_, microseconds(1000), microseconds(80'000)));
  end_later(kLongMax, [this, node] {
    if (node->is_running()) node->process().slow_down(Process::kTurnMax);
    pop_.conditions().restore(node->host());
  });
}

// ---- Shards ----

void Faults::fault_of_shard(FaultKind kind) {
  if (pop_.shards().empty()) return;
  ShardServer& shard = *pop_.shards()[static_cast<std::size_t>(draw(random_, 0, pop_.shards().size() - 1))];
  if (!shard.is_running() || shard.process()->is_paused()) return;
  note(shard.name() + ": " + std::string(fault_name(kind)));
  if (kind == FaultKind::kShardRestart) {
    shard.kill();
    shard.start();
    checks_.limits.forgotten();
    return;
  }
  if (kind == FaultKind::kEviction) {
    (void)shard.memcached()->evict(static_cast<std::size_t>(draw(random_, 1, shard.memcached()->items() + 1)));
    checks_.bracket.evicted(shard.host());
    checks_.limits.forgotten();
    return;
  }
  pop_.conditions().disturb(shard.host());
  if (kind == FaultKind::kShardOutage) shard.kill();
  if (kind == FaultKind::kShardPause) shard.process()->pause();
  if (kind == FaultKind::kNoMemory) shard.memcached()->refuse_memory(true);
  end_later(kLongMax, [this, kind, &shard] {
    note(shard.name() + ": no more " + std::string(fault_name(kind)));
    if (kind == FaultKind::kShardOutage) shard.start();
    if (kind == FaultKind::kShardPause) shard.process()->resume();
    if (kind == FaultKind::kNoMemory && shard.is_running()) shard.memcached()->refuse_memory(false);
    checks_.limits.forgotten();
    pop_.conditions().restore(shard.host());
  });
}

// ---- Clocks, operators, rules ----

void Faults::step_clock(Node& node) {
  if (node.machine().is_off()) return;  // two steps may leave a clock that is neither right nor off
  const microseconds by = chance(random_, 0.5) ? draw(random_, Pop::kTolerance * 2, std::chrono::seconds(2))
                                               : draw(random_, std::chrono::seconds(2), std::chrono::hours(1));
  const microseconds step = chance(random_, 0.5) ? by : -by;
  note("the wall clock of " + node.name() + " steps by " + std::to_string(step.count()) + " us");
  pop_.conditions().disturb_clocks();
  node.machine().step_wall(step);
  end_later(kLongMax, [this, &node, step] {
    note("the wall clock of " + node.name() + " is right again");
    node.machine().step_wall(-step);
    pop_.conditions().restore_clocks();
  });
}

const Traffic::Client& Faults::any_client() {
  return traffic_.clients()[static_cast<std::size_t>(draw(random_, 0, traffic_.clients().size() - 1))];
}

void Faults::lift() {
  Node* const node = running_node();
  if (node == nullptr) return;
  node->process().post([node, key = traffic_.key_of(any_client())] {
    const PopInstant wall = node->process().wall_now();
    (void)node->pipeline().mitigations().lift({key, wall, "simulated"}, node->process().host_now(), wall);
  });
}

void Faults::block() {
  Node* const node = running_node();
  if (node == nullptr) return;
  const microseconds duration = draw(random_, microseconds(500'000), microseconds(30'000'000));
  node->process().post([node, key = traffic_.key_of(any_client()), duration] {
    (void)node->pipeline().mitigations().block({key, 0, duration, "simulated"}, node->process().host_now(),
                                               node->process().wall_now());
  });
}

void Faults::change_rules() {
  note(rule_changes_.make());
  checks_.limits.forgotten();
}

void Faults::flood() {
  const std::size_t rule = static_cast<std::size_t>(draw(random_, 0, pop_.rules().all().size() - 1));
  const std::size_t clients = static_cast<std::size_t>(draw(random_, 10, kFloodClientsMax));
  note(std::to_string(clients) + " new clients under rule " + pop_.rules().all()[rule].name);
  traffic_.flood(rule, clients, static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1)));
  checks_.limits.forgotten();  // hits of others may find no room
  pop_.world().after(Traffic::kFloodLasts, [this] { checks_.limits.forgotten(); });
}

// Most orders are taken back in time, some of them at another node.
void Faults::brake() {
  Node* const node = running_node();
  if (node == nullptr) return;
  const Brakes::Order order = brake_orders_.draw_for(*node);
  note(BrakeOrders::text_of(*node, order));
  brake_orders_.give(*node, order);
  if (!order.off) return;
  end_later(kLongMax, [this, node, order] {
    Node* const other = running_node();
    Brakes::Order back = order;
    back.off = false;
    Node& where = order.side == BrakeSide::kPop && other != nullptr ? *other : *node;
    note(BrakeOrders::text_of(where, back));
    brake_orders_.give(where, back);
  });
}

}  // namespace popgate::simulation
