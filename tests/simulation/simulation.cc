// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/simulation.h"

#include "tests/simulation/bounds_check.h"
#include "tests/simulation/faults.h"

namespace popgate::simulation {
namespace {

using std::chrono::seconds;

/// Without news, sets must agree so long after everything has healed.
constexpr seconds kConvergedWithin{12};
constexpr milliseconds kConvergedPoll{100};
constexpr seconds kStopsWithin{5};

std::vector<Rule> draw_rules(Random& random) {
  std::vector<Rule> rules;
  for (int i = 0; i < 3; ++i) {
    Rule rule;
    rule.name = "rule-" + std::to_string(i + 1);
    rule.number = static_cast<RuleNumber>(i + 1);  // each node has its own in the end
    rule.match.path_match = PathMatch::kExact;
    rule.match.path = "/" + std::to_string(i);
    rule.key = {{}};
    rule.limit = draw(random, 5, 60);
    const auto window = milliseconds(draw(random, 15, 70) * 100);
    rule.window = WindowShape::make(window, kSlotsDefault, Pop::kTolerance);
    constexpr milliseconds kMitigate[] = {milliseconds(0), milliseconds(700), milliseconds(3000), milliseconds(20000)};
    rule.mitigate = kMitigate[draw(random, 0, 3)];
    rule.action = chance(random, 0.15) ? Action::kLog : Action::kBlock;
    rule.count = chance(random, 0.3) ? CountMode::kAll : CountMode::kAllowed;
    rule.cost = chance(random, 0.8) ? 1 : 3;
    rule.policy = static_cast<Policy>(draw(random, 0, 2));
    rule.on_counter_failure = static_cast<OnCounterFailure>(draw(random, 0, 2));
    if (chance(random, 0.2)) rule.max_blocked_share = static_cast<std::uint32_t>(draw(random, 10, 90));
    identify(rule);
    rules.push_back(std::move(rule));
  }
  return rules;
}

Pop::Shape draw_shape(Random& random, const Plan& plan) {
  Pop::Shape shape;
  shape.nodes = plan.nodes > 0 ? plan.nodes : static_cast<std::size_t>(draw(random, 2, 5));
  shape.shards = static_cast<std::size_t>(draw(random, 1, 3));
  shape.proxied = chance(random, 0.4);
  // Bounds are small in some runs, so that they are reached.
  shape.keys_max = chance(random, 0.2) ? 8 : 1024;
  if (chance(random, 0.25)) shape.table_entries = 32;
  if (chance(random, 0.2)) shape.batches_in_flight = 2;
  if (chance(random, 0.2)) shape.batch_keys_max = 2;
  if (chance(random, 0.3)) shape.mesh_output_bytes_max = 4096;
  shape.rules = RuleSet(draw_rules(random));
  return shape;
}

// With one client a shard has one key: what gives a lost counter away through the counters of others does not then.
std::size_t draw_clients(Random& random) {
  return static_cast<std::size_t>(chance(random, 0.2) ? draw(random, 1, 2) : draw(random, 4, 20));
}

class Run {
 public:
  explicit Run(const Plan& plan)
      : plan_(plan),
        world_(plan.seed),
        random_(world_.random_for("plan")),
        pop_(world_, draw_shape(random_, plan)),
        traffic_(pop_, draw_clients(random_)),
        accounts_(pop_),
        bracket_(pop_),
        entries_(pop_),
        limits_(pop_, traffic_),
        retract_(pop_, traffic_),
        brakes_(pop_, entries_),
        bounds_(pop_),
        faults_(pop_, traffic_, {bracket_, entries_, limits_, retract_, brakes_}) {
    world_.print_trace(plan.print_trace);
    pop_.watch({.judged = [this](Node& node, const SlotTotals& totals,
                                 const JudgedTotals& judged) { bracket_.judged(node, totals, judged); },
                .turn = [this](Node& node) { turn(node); },
                .reload = [this](Node& node, Node::Reload reload) { retract_.reload(node, reload); },
                .checked = [this](Node& node, const Rule& rule,
                                  const TableAnswer& answer) { brakes_.checked(node, rule, answer); }});
  }

  [[nodiscard]] Outcome run();

 private:
  void turn(Node& node);
  void describe();
  void wait_for_agreement();
  [[nodiscard]] std::string what_is_not_well();
  void stop_all();

  Plan plan_;
  World world_;
  Random random_;
  Pop pop_;
  Traffic traffic_;
  AccountsCheck accounts_;
  BracketCheck bracket_;
  EntryCheck entries_;
  LimitCheck limits_;
  RetractCheck retract_;
  BrakeCheck brakes_;
  BoundsCheck bounds_;
  Faults faults_;
  Outcome outcome_;
};

void Run::turn(Node& node) {
  if (!pop_.fault().empty()) return;
  accounts_.look(node);
  entries_.turn(node);
  retract_.turn(node);
  brakes_.turn(node);
  bounds_.turn(node);
}

void Run::describe() {
  std::string text = std::to_string(pop_.nodes().size()) + " nodes, " + std::to_string(pop_.shards().size()) +
                     " shards" + (pop_.is_proxied() ? " behind twemproxy, " : ", ") +
                     std::to_string(traffic_.clients().size()) + " clients; faults:";
  for (const FaultKind kind : faults_.allowed()) text += " " + std::string(fault_name(kind)) + ",";
  world_.note(text);
  for (const Rule& rule : pop_.rules().all()) {
    world_.note(rule.name + ": " + std::to_string(rule.limit) + " in " + std::to_string(rule.window.window.count()) +
                " us, cost " + std::to_string(rule.cost) + ", mitigate " + std::to_string(rule.mitigate.count()) +
                " ms, policy " + std::string(policy_name(rule.policy)) + ", on_counter_failure " +
                std::string(on_counter_failure_name(rule.on_counter_failure)) +
                (rule.count == CountMode::kAll ? ", count all" : "") + (rule.action == Action::kLog ? ", log" : "") +
                (rule.max_blocked_share ? ", fuse " + std::to_string(*rule.max_blocked_share) + " %" : ""));
  }
}

Outcome Run::run() {
  describe();
  pop_.start();
  traffic_.start();
  limits_.start();
  const ModelInstant heals_at = world_.now() + plan_.length;
  faults_.start(heals_at);
  world_.run_until(heals_at);
  if (pop_.fault().empty()) wait_for_agreement();
  if (pop_.fault().empty()) stop_all();
  outcome_.fault = pop_.fault();
  outcome_.last_lines.assign(world_.last_lines().begin(), world_.last_lines().end());
  outcome_.trace_hash = world_.trace_hash();
  outcome_.events = world_.events();
  outcome_.faults = faults_.begun();
  outcome_.requests = traffic_.figures().requests;
  outcome_.denied = traffic_.figures().denied;
  outcome_.waited = traffic_.figures().waited;
  outcome_.hits = pop_.truth().hits();
  outcome_.decisions = entries_.decisions();
  outcome_.lifts = entries_.lifts();
  outcome_.wrongly_stamped = pop_.stamps().excused() + pop_.stamps().refused();
  outcome_.excused = pop_.stamps().excused();
  outcome_.lower_bounds = bracket_.looked_at_lo();
  outcome_.upper_bounds = bracket_.looked_at_hi();
  outcome_.limits = limits_.looked_at();
  outcome_.judged_again = retract_.judged_again();
  outcome_.retracted = retract_.retracted();
  outcome_.orders = brakes_.orders();
  outcome_.let_pass = brakes_.let_pass();
  outcome_.fuses_blown = brakes_.fuses_blown();
  outcome_.bounds = bounds_.reached();
  outcome_.latest_copy = entries_.latest_copy();
  return outcome_;
}

void Run::wait_for_agreement() {
  faults_.heal();
  traffic_.stop();
  const ModelInstant healed = world_.now();
  std::string difference;
  do {
    world_.run_until(world_.now() + kConvergedPoll);
    if (!pop_.fault().empty()) return;
    difference = entries_.difference();
    if (difference.empty()) difference = brakes_.difference();
    if (difference.empty()) difference = what_is_not_well();
    outcome_.converged_after = world_.now() - healed;
  } while (!difference.empty() && outcome_.converged_after < kConvergedWithin);
  if (!difference.empty()) return pop_.broken("6", "long after everything healed, " + difference);
  accounts_.look_at_all();
  outcome_.uncertain = accounts_.total(LedgerColumn::kUncertain);
  outcome_.lost = accounts_.total(LedgerColumn::kLost);
}

// A node that has lost its peers while clocks differed hears of no right clock before it hears them again; and one
// whose shard was away tries it again with a back-off.
std::string Run::what_is_not_well() {
  for (const auto& node : pop_.nodes()) {
    if (!node->is_running()) return node->name() + " does not run";
    if (node->figure("popgate_clock_off") > 0) return node->name() + " holds its clock to be off";
    for (const ShardStatus& shard : node->pipeline().store().shards()) {
      if (!shard.reachable) return node->name() + " does not reach " + shard.name;
    }
  }
  return {};
}

// After an orderly stop with everything well, nothing is lost: every hit is accounted for by the ledger itself.
void Run::stop_all() {
  const std::uint64_t lost_before = accounts_.total(LedgerColumn::kLost);
  for (const auto& node : pop_.nodes()) node->stop([] {});
  world_.run_until(world_.now() + kStopsWithin);
  for (const auto& node : pop_.nodes()) {
    if (node->is_running()) return pop_.broken("3", node->name() + " does not stop");
    node->start();
  }
  if (pop_.fault().empty()) accounts_.look_at_all();
  const std::uint64_t lost = accounts_.total(LedgerColumn::kLost) - lost_before;
  if (lost > 0) pop_.broken("3", std::to_string(lost) + " hits were lost by orderly stops");
}

}  // namespace

Outcome simulate(const Plan& plan) { return Run(plan).run(); }

std::string command_of(const Plan& plan) {
  std::string command = "simulate --seed " + std::to_string(plan.seed) + " --trace";
  if (plan.nodes > 0) command += " --nodes " + std::to_string(plan.nodes);
  if (plan.length != Plan{}.length) command += " --seconds " + std::to_string(plan.length.count());
  return command;
}

}  // namespace popgate::simulation
