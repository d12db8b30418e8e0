// SPDX-License-Identifier: Apache-2.0
//
// What a request costs: popgate_check without a daemon, with one for a client that passes and for one that is blocked,
// and recording alone.
#include <benchmark/benchmark.h>
#include <popgate/popgate.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "libclient/record/hit_ring.h"
#include "tests/libclient/daemon_side.h"

namespace popgate {
namespace {

popgate_request request_of(std::uint32_t client) {
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.host = "www.example.com";
  request.host_bytes = 15;
  request.path = "/login";
  request.path_bytes = 6;
  request.client.bytes = 4;
  for (unsigned i = 0; i < 4; ++i) request.client.octets[i] = static_cast<std::uint8_t>(client >> (24 - 8 * i));
  return request;
}

// A daemon that is pumped between the measured stretches, so that the ring never fills up while one is measured.
class Bench {
 public:
  explicit Bench(bool tick_thread) : ledger_(Ledger::in_memory()), daemon_(path(), *ledger_, table_) {
    daemon_.use_rules({rule_for_all("all", *ledger_->number_for(1))});
    popgate_options options = POPGATE_OPTIONS_INIT;
    options.ring_slots = kRingSlotsMax;
    options.tick_thread = tick_thread ? 1 : 0;
    if (popgate_open(path().c_str(), &options, &client_) != POPGATE_OK) throw std::runtime_error("popgate_open");
    const bool attached = daemon_.pump_until([&] {
      popgate_statistics statistics = POPGATE_STATISTICS_INIT;
      (void)popgate_tick(client_);
      return popgate_get_statistics(client_, &statistics) == POPGATE_OK && statistics.attached == 1;
    });
    if (!attached) throw std::runtime_error("not attached");
  }
  ~Bench() { popgate_close(client_); }

  void block(const popgate_request& request) {
    (void)popgate_check(client_, &request, nullptr);
    (void)daemon_.pump_until([&] { return !daemon_.hits().empty(); });
    table_.put(daemon_.hits()[0].key, daemon_.hits()[0].rule, std::chrono::hours(24));
  }
  void make_room() { daemon_.workers().drain_all(); }
  [[nodiscard]] popgate_client* client() { return client_; }

 private:
  [[nodiscard]] std::string path() const { return directory_.file("workers.sock"); }

  TemporaryDirectory directory_;
  std::unique_ptr<Ledger> ledger_;
  DaemonSide::Table table_;
  DaemonSide daemon_;
  popgate_client* client_ = nullptr;
};

void check_many(benchmark::State& state, Bench& bench, std::uint32_t clients) {
  std::uint32_t next = 0;
  std::uint32_t since_room = 0;
  popgate_verdict verdict = POPGATE_VERDICT_INIT;
  for (auto _ : state) {
    const popgate_request request = request_of(next++ % clients);
    benchmark::DoNotOptimize(popgate_check(bench.client(), &request, &verdict));
    if (++since_room < kRingSlotsMax / 2) continue;
    state.PauseTiming();
    bench.make_room();
    since_room = 0;
    state.ResumeTiming();
  }
}

void check_detached(benchmark::State& state) {
  popgate_client* client = nullptr;
  if (popgate_open("/nonexistent/workers.sock", nullptr, &client) != POPGATE_OK) return;
  const popgate_request request = request_of(1);
  for (auto _ : state) benchmark::DoNotOptimize(popgate_check(client, &request, nullptr));
  popgate_close(client);
}
BENCHMARK(check_detached);

void check_passes(benchmark::State& state) {
  Bench bench(false);
  check_many(state, bench, 100'000);
}
BENCHMARK(check_passes);

void check_passes_with_tick_thread(benchmark::State& state) {
  Bench bench(true);
  check_many(state, bench, 100'000);
}
BENCHMARK(check_passes_with_tick_thread);

void check_blocked(benchmark::State& state) {
  Bench bench(false);
  bench.block(request_of(0));
  check_many(state, bench, 1);
}
BENCHMARK(check_blocked);

void record(benchmark::State& state) {
  HitRing ring;
  if (!ring.create(kRingSlotsDefault, "")) return;
  Mapping other;
  if (!other.map(ring.file_descriptor(), ring_bytes(kRingSlotsDefault), PROT_READ | PROT_WRITE, false)) return;
  auto& header = *reinterpret_cast<RingHeader*>(other.data());
  std::uint64_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.record({{n, n}, 0, 1, 1}));
    if (++n % 32768 == 0) header.tail.store(n);
  }
}
BENCHMARK(record);

void record_dropped(benchmark::State& state) {
  HitRing ring;
  if (!ring.create(kRingSlotsMin, "")) return;
  for (auto _ : state) benchmark::DoNotOptimize(ring.record({{1, 1}, 0, 1, 1}));
}
BENCHMARK(record_dropped);

}  // namespace
}  // namespace popgate

BENCHMARK_MAIN();
