// SPDX-License-Identifier: Apache-2.0
//
// What a hit costs the daemon: taken out of a ring, through the ledger, into the collector; and the collector alone.
#include <benchmark/benchmark.h>
#include <fcntl.h>

#include "daemon/collect/collector.h"
#include "daemon/collect/ring_reader.h"
#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

constexpr std::uint32_t kBatch = 32768;

std::uint64_t spread(std::uint64_t n) { return n * 0x9e3779b97f4a7c15; }

void drain(benchmark::State& state) {
  const auto ledger = Ledger::in_memory();
  const RuleNumber rule = *ledger->number_for(1);
  Collector collector({262144, 5}, *ledger);
  Rule made = rule_for_all("all", rule);
  identify(made);
  collector.use_rules(std::make_shared<const RuleSet>(std::vector<Rule>{made}));
  HitRing ring;
  if (!ring.create(kRingSlotsDefault, "")) return;
  auto reader = RingReader::open(FileDescriptor(fcntl(ring.file_descriptor(), F_DUPFD_CLOEXEC, 0)), *ledger);
  if (!reader.ok()) return;
  const auto keys = static_cast<std::uint64_t>(state.range(0));
  std::uint64_t n = 0;
  std::vector<HitSum> sums;
  for (auto _ : state) {
    state.PauseTiming();
    const PopInstant now = PopClock::now();
    for (std::uint32_t i = 0; i < kBatch; ++i, ++n) {
      (void)ring.record({{spread(n % keys), spread(n % keys + 1)}, now.time_since_epoch().count(), rule, 1});
    }
    state.ResumeTiming();
    (*reader)->look();
    while ((*reader)->waiting() != 0) {
      for (const Hit& hit : (*reader)->drain()) collector.add(hit, now);
    }
    collector.flush(now, sums);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(n));
}
BENCHMARK(drain)->Arg(1)->Arg(1000)->Arg(1'000'000);

}  // namespace
}  // namespace popgate

BENCHMARK_MAIN();
