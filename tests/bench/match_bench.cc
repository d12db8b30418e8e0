// SPDX-License-Identifier: Apache-2.0
//
// The matcher with few and with very many host-specific rules: the cost of a request must not grow with the rules that
// it does not fall under, but for the caches that a larger block misses.
#include <benchmark/benchmark.h>

#include "daemon/config.h"
#include "libclient/match/glob.h"
#include "libclient/match/matcher.h"
#include "libclient/match/request_target.h"

namespace popgate {
namespace {

std::string host_of(std::int64_t i) { return "shop-" + std::to_string(i) + ".example.com"; }

RuleSet host_rules(std::int64_t count) {
  std::vector<Rule> rules;
  for (std::int64_t i = 0; i < count; ++i) {
    Rule rule;
    rule.name = "rule-" + std::to_string(i);
    rule.number = static_cast<RuleNumber>(i);
    rule.match.host_match = HostMatch::kExact;
    rule.match.host = host_of(i);
    if (i % 2 == 0) {
      rule.match.path_match = PathMatch::kExact;
      rule.match.path = "/login";
    }
    rule.key = {KeyPartSpec{}};
    rule.limit = 10;
    rule.window = WindowShape::make(std::chrono::seconds(60), 6, milliseconds(20));
    identify(rule);
    rules.push_back(std::move(rule));
  }
  return RuleSet(std::move(rules));
}

/// A request for each of many hosts in turn, all of which have a rule, or none.
void match_hosts(benchmark::State& state, bool known) {
  const std::vector<std::byte> block = compile_rules(host_rules(state.range(0)), HashSecret{}, {});
  RulesView view;
  const char* reason = nullptr;
  if (!view.open(block, reason)) return state.SkipWithError(reason);
  std::vector<std::string> hosts;
  for (std::int64_t i = 0; i < 4096; ++i)
    hosts.push_back(known ? host_of(i * 7919 % state.range(0)) : "other-" + std::to_string(i) + ".example.net");
  Request request;
  request.method = "POST";
  request.path = "/login";
  request.client = {{192, 0, 2, 1}, 4};
  Matches matches;
  std::size_t next = 0;
  for (auto _ : state) {
    request.host = hosts[next++ & 4095];
    match(view, request, matches);
    benchmark::DoNotOptimize(matches.count);
  }
  state.counters["block_bytes"] = static_cast<double>(block.size());
}

void match_known_hosts(benchmark::State& state) { match_hosts(state, true); }
void match_unknown_hosts(benchmark::State& state) { match_hosts(state, false); }
BENCHMARK(match_known_hosts)->Arg(10)->Arg(1000)->Arg(300'000);
BENCHMARK(match_unknown_hosts)->Arg(10)->Arg(1000)->Arg(300'000);

void normalise(benchmark::State& state, std::string_view target) {
  PathBuffer buffer;
  for (auto _ : state) benchmark::DoNotOptimize(read_target(target, buffer));
}
BENCHMARK_CAPTURE(normalise, plain_30_bytes, "/catalogue/item/4711/view?a=bc");
BENCHMARK_CAPTURE(normalise, detours_30_bytes, "/catalogue/../%69tem/./4711//v");

void glob(benchmark::State& state, std::string_view pattern) {
  GlobShape shape;
  if (!read_glob(pattern, shape)) return state.SkipWithError("not a glob");
  for (auto _ : state) benchmark::DoNotOptimize(glob_matches(pattern, shape, "/api/v1/users/4711/settings/edit"));
}
BENCHMARK_CAPTURE(glob, folder, "/api/**");
BENCHMARK_CAPTURE(glob, automaton, "/api/*/users/*/**edit");

void compile(benchmark::State& state) {
  const RuleSet rules = host_rules(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(compile_rules(rules, HashSecret{}, {}));
}
BENCHMARK(compile)->Arg(1000)->Arg(300'000)->Unit(benchmark::kMillisecond);

void open_block(benchmark::State& state) {
  const std::vector<std::byte> block = compile_rules(host_rules(state.range(0)), HashSecret{}, {});
  RulesView view;
  const char* reason = nullptr;
  for (auto _ : state) benchmark::DoNotOptimize(view.open(block, reason));
}
BENCHMARK(open_block)->Arg(1000)->Arg(300'000)->Unit(benchmark::kMillisecond);

void read_config(benchmark::State& state) {
  std::string text = "rules:\n";
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    text += "  - name: rule-" + std::to_string(i) + "\n    match: {host: " + host_of(i) +
            ", path: /login, method: POST}\n    key: [client_ip]\n    limit: 100\n    window: 60s\n    mitigate: 10m\n";
  }
  for (auto _ : state) benchmark::DoNotOptimize(parse_config(text, "bench"));
  state.counters["bytes"] = static_cast<double>(text.size());
}
BENCHMARK(read_config)->Arg(1000)->Arg(300'000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace popgate

BENCHMARK_MAIN();
