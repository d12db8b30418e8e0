// SPDX-License-Identifier: Apache-2.0
//
// A look-up in the mitigation table, at a tenth of the entries it is configured for, at eight tenths, and full; and the
// writer's insert and delete.
//
// `hot`: 1,000 keys in turn, whose cache lines stay near. Otherwise every look-up meets a bucket that was not looked at
// for long, as a flood from many sources would.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "daemon/publish/table_writer.h"
#include "tests/daemon/publish/image_memory.h"

namespace popgate {
namespace {

constexpr std::size_t kEntries = 262'144;  // the default of table_entries: 8 MiB

struct Filled {
  explicit Filled(std::int64_t percent)
      : memory(bucket_count_for(kEntries), HostClock::now()), editor(memory, bucket_count_for(kEntries), kEntries) {
    const HostInstant now = HostClock::now();
    (void)editor.adopt({}, now);
    for (std::size_t i = 0; i < kEntries * static_cast<std::size_t>(percent) / 100; ++i) {
      keys.push_back({random(), random()});
      (void)editor.put({keys.back(), 1, now + std::chrono::hours(24), false, false}, now);
    }
  }
  std::mt19937_64 random{1};
  ImageMemory memory;
  TableEditor editor;
  std::vector<Key> keys;
};

void look_up(benchmark::State& state, bool hit, bool hot) {
  Filled table(state.range(0));
  const TableReader reader = table.memory.reader();
  std::vector<Key> asked(hot ? 1000 : 200'000);
  for (Key& key : asked) {
    key = hit ? table.keys[table.random() % table.keys.size()] : Key{table.random(), table.random()};
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(reader.look_up(asked[i]));
    i = i + 1 < asked.size() ? i + 1 : 0;
  }
}

void insert_and_remove(benchmark::State& state) {
  Filled table(state.range(0));
  const HostInstant now = HostClock::now();
  for (auto _ : state) {
    const Key key{table.random(), table.random()};
    benchmark::DoNotOptimize(table.editor.put({key, 1, now + std::chrono::hours(1), false, false}, now));
    table.editor.remove(key);
  }
}

BENCHMARK_CAPTURE(look_up, miss_hot, false, true)->Arg(10)->Arg(80)->Arg(100);
BENCHMARK_CAPTURE(look_up, hit_hot, true, true)->Arg(10)->Arg(80)->Arg(100);
BENCHMARK_CAPTURE(look_up, miss, false, false)->Arg(10)->Arg(80)->Arg(100);
BENCHMARK_CAPTURE(look_up, hit, true, false)->Arg(10)->Arg(80)->Arg(100);
BENCHMARK(insert_and_remove)->Arg(10)->Arg(80);

}  // namespace
}  // namespace popgate

BENCHMARK_MAIN();
