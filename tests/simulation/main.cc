// SPDX-License-Identifier: Apache-2.0
//
// simulate: runs a simulated PoP for one seed or many, and says which promise broke.
//
//     simulate --seed 7 --trace          one seed, with everything that happened
//     simulate --seeds 1..100000         many; ends at the first that fails, after printing how to run it again
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/simulation/simulation.h"

namespace popgate::simulation {
namespace {

struct Totals {
  std::uint64_t runs = 0;
  Outcome sum;
  void add(const Outcome& one);
  void print() const;
};

void Totals::add(const Outcome& one) {
  ++runs;
  sum.trace_hash = one.trace_hash;
  sum.events += one.events;
  sum.faults += one.faults;
  sum.requests += one.requests;
  sum.denied += one.denied;
  sum.waited += one.waited;
  sum.hits += one.hits;
  sum.uncertain += one.uncertain;
  sum.lost += one.lost;
  sum.decisions += one.decisions;
  sum.lifts += one.lifts;
  sum.wrongly_stamped += one.wrongly_stamped;
  sum.excused += one.excused;
  sum.lower_bounds += one.lower_bounds;
  sum.upper_bounds += one.upper_bounds;
  sum.limits += one.limits;
  sum.judged_again += one.judged_again;
  sum.retracted += one.retracted;
  sum.orders += one.orders;
  sum.let_pass += one.let_pass;
  sum.fuses_blown += one.fuses_blown;
  sum.bounds += one.bounds;
  sum.converged_after = std::max(sum.converged_after, one.converged_after);
  sum.latest_copy = std::max(sum.latest_copy, one.latest_copy);
}

void Totals::print() const {
  const auto line = [](const char* what, std::uint64_t value) {
    std::printf("  %-28s %12llu\n", what, static_cast<unsigned long long>(value));
  };
  line("runs", runs);
  line("events", sum.events);
  line("faults", sum.faults);
  line("requests", sum.requests);
  line("denied", sum.denied);
  line("came back after Retry-After", sum.waited);
  line("hits", sum.hits);
  line("uncertain", sum.uncertain);
  line("lost with a daemon", sum.lost);
  line("decisions", sum.decisions);
  line("lifts", sum.lifts);
  line("stamped by wrong clocks", sum.wrongly_stamped);
  line("of these, excused", sum.excused);
  line("lower bounds looked at", sum.lower_bounds);
  line("upper bounds looked at", sum.upper_bounds);
  line("limits looked at", sum.limits);
  line("entries judged again", sum.judged_again);
  line("of these, retracted", sum.retracted);
  line("orders about blocking", sum.orders);
  line("let pass by them", sum.let_pass);
  line("fuses blown", sum.fuses_blown);
  line("bounds reached", sum.bounds);
  line("latest agreement, ms", static_cast<std::uint64_t>(sum.converged_after.count() / 1000));
  line("latest copy, ms", static_cast<std::uint64_t>(sum.latest_copy.count() / 1000));
}

void print_fault(const Plan& plan, const Outcome& outcome) {
  if (!plan.print_trace) {
    for (const std::string& line : outcome.last_lines) std::printf("%s\n", line.c_str());
  }
  std::printf("\nseed %llu: %s\nto see it again: %s\n", static_cast<unsigned long long>(plan.seed),
              outcome.fault.c_str(), command_of(plan).c_str());
}

int run(int argc, char** argv) {
  Plan plan;
  std::string seeds;
  std::int64_t length = plan.length.count();
  bool log = false;
  bool keep_going = false;
  CLI::App app("Runs a simulated PoP and holds it against Popgate's promises.");
  app.add_option("--seed", plan.seed, "one seed");
  app.add_option("--seeds", seeds, "FIRST..LAST: many seeds");
  app.add_option("--nodes", plan.nodes, "1 to 64; drawn from the seed when left out");
  app.add_option("--seconds", length, "model time of traffic and faults");
  app.add_flag("--trace", plan.print_trace, "print what happens");
  app.add_flag("--log", log, "print what the daemons log");
  app.add_flag("--keep-going", keep_going, "do not end at the first seed that fails");
  CLI11_PARSE(app, argc, argv);
  plan.length = std::chrono::seconds(length);
  spdlog::set_level(log ? spdlog::level::info : spdlog::level::off);
  std::uint64_t first = plan.seed;
  std::uint64_t last = plan.seed;
  if (!seeds.empty()) {
    const std::size_t dots = seeds.find("..");
    if (dots == std::string::npos) {
      std::fprintf(stderr, "--seeds: found \"%s\", allowed: FIRST..LAST\n", seeds.c_str());
      return 2;
    }
    first = std::stoull(seeds.substr(0, dots));
    last = std::stoull(seeds.substr(dots + 2));
  }
  Totals totals;
  int failed = 0;
  for (plan.seed = first; plan.seed <= last; ++plan.seed) {
    const Outcome outcome = simulate(plan);
    totals.add(outcome);
    if (outcome.fault.empty()) continue;
    ++failed;
    if (!keep_going) {
      print_fault(plan, outcome);
      break;
    }
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(plan.seed), outcome.fault.c_str());
  }
  totals.print();
  std::printf("  %-28s %12d\n", "failed", failed);
  if (totals.runs == 1)
    std::printf("  %-28s %016llx\n", "trace hash", static_cast<unsigned long long>(totals.sum.trace_hash));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace popgate::simulation

int main(int argc, char** argv) { return popgate::simulation::run(argc, argv); }
