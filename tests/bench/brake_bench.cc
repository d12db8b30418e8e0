// SPDX-License-Identifier: Apache-2.0
//
// Why the brakes are words in the table's header: what it takes to stop the blocking of a full table by a word, and by
// publishing every entry again as log-only; and what a reader pays for the words.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>

#include "daemon/mitigate/mitigations.h"
#include "daemon/publish/publisher.h"
#include "libclient/check/table_reader.h"
#include "libclient/mapping.h"

namespace popgate {
namespace {

constexpr std::size_t kEntries = 200'000;

Rule rule_with(Action action) {
  Rule rule;
  rule.name = "login";
  rule.limit = 10;
  rule.mitigate = std::chrono::hours(1);
  rule.window.window = std::chrono::minutes(1);
  rule.action = action;
  identify(rule);
  rule.number = 1;
  return rule;
}

/// A node's set and table, full.
class FullNode {
 public:
  FullNode() {
    std::filesystem::create_directories(run_);
    std::vector<std::string> notes;
    auto opened = Publisher::open({run_, "", kEntries, 1, "node"}, notes);
    if (!opened) std::abort();
    publisher = *std::move(opened);
    publisher->reconcile([](const Key&) { return std::nullopt; }, now);
    mitigations.use_rules(blocking, now);
    mitigations.allow_originating(0);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kEntries; ++i) {
      keys.push_back({random(), random()});
      (void)mitigations.decide({keys.back(), blocking->all()[0], {11, 11, 11, 10}, {now + std::chrono::hours(1), now}},
                               now, PopClock::now());
    }
  }
  ~FullNode() { std::filesystem::remove_all(run_); }
  FullNode(const FullNode&) = delete;
  FullNode& operator=(const FullNode&) = delete;

  HostInstant now = HostClock::now();
  std::vector<Key> keys;
  SharedRules blocking = std::make_shared<const RuleSet>(std::vector{rule_with(Action::kBlock)});
  SharedRules logging = std::make_shared<const RuleSet>(std::vector{rule_with(Action::kLog)});
  std::unique_ptr<Publisher> publisher;
  Mitigations mitigations{{"node", 1, kEntries}, [this](const Mitigation& m, const Origin&) {
                            publisher->enforce(m.key, mitigations.enforcement(m.key, now), now);
                          }};

 private:
  std::string run_ = "/dev/shm/popgate-brake-bench-" + std::to_string(getpid());
};

void stop_by_publishing_every_entry_again(benchmark::State& state) {
  FullNode node;
  bool log_only = false;
  for (auto _ : state) {
    log_only = !log_only;
    node.mitigations.use_rules(log_only ? node.logging : node.blocking, node.now);
  }
}
BENCHMARK(stop_by_publishing_every_entry_again)->Unit(benchmark::kMillisecond);

// The same as far as workers are concerned; without the file.
void stop_by_a_word(benchmark::State& state) {
  FullNode node;
  Brakes brakes("node", [](const Brakes::Change&) {});
  std::uint64_t stamp = 0;
  for (auto _ : state) {
    ++stamp;
    brakes.restore(BrakeSide::kNode, {node.blocking->all()[0].id, stamp % 2 == 0, {stamp, 1}, {}, {}, "", ""});
    node.publisher->brakes().use_rules(brakes, *node.blocking);
  }
}
BENCHMARK(stop_by_a_word)->Unit(benchmark::kMicrosecond);

void look_up_a_live_entry(benchmark::State& state) {
  FullNode node;
  Brakes brakes("node", [](const Brakes::Change&) {});
  std::vector<Rule> rules{node.blocking->all()[0]};
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    Rule& off = rules.emplace_back(rules[0]);
    off.name += std::to_string(i);
    identify(off);
    off.number = static_cast<RuleNumber>(i + 2);
    brakes.restore(BrakeSide::kNode, {off.id, true, {1, 1}, {}, {}, "", ""});
  }
  node.publisher->brakes().use_rules(brakes, RuleSet(rules));
  Mapping table;
  TableReader reader;
  const char* reason = nullptr;
  if (!table.map(node.publisher->table_descriptor(), node.publisher->table_bytes(), PROT_READ, true) ||
      !reader.open(table.view(), reason)) {
    std::abort();
  }
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(reader.look_up(node.keys[i++ % 64], node.now));
}
BENCHMARK(look_up_a_live_entry)->ArgName("rules_off")->Arg(0)->Arg(1)->Arg(8)->Arg(512);

}  // namespace
}  // namespace popgate

BENCHMARK_MAIN();
