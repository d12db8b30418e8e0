// SPDX-License-Identifier: Apache-2.0
//
// The path of one node from a hit to a published mitigation: creates every stage in order and connects each to the
// next.
//
// This is the only place that knows the whole path. It decides nothing itself. What surrounds the path (workers, the
// operator's interface, signals) is daemon.cc; time and network are handed in, so that a simulated PoP runs this very
// wiring.
//
//     add() -> Collector -> CounterStore -> judge_totals -> Mitigations -> Publisher, Mesh
//
// Threads: the loop's.
// Invariants: 1. A mitigation is recorded and published before a peer hears of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <unordered_set>
#include <vector>

#include "daemon/brake_control.h"
#include "daemon/clock_guard.h"
#include "daemon/clock_watch.h"
#include "daemon/collect/collector.h"
#include "daemon/collect/ledger.h"
#include "daemon/config.h"
#include "daemon/count/memcached_store.h"
#include "daemon/fuse_control.h"
#include "daemon/log_limiter.h"
#include "daemon/mitigate/closed_keys.h"
#include "daemon/mitigate/judge_totals.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/peers/mesh.h"
#include "daemon/publish/publisher.h"
#include "daemon/reactor.h"
#include "daemon/result.h"
#include "daemon/rule_names.h"
#include "daemon/transport.h"

namespace popgate {

class Pipeline {
 public:
  struct Setup {
    Reactor& reactor;
    Transport& to_shards;
    Transport& to_peers;
    std::uint64_t seed = 0;
    /// Told of every judgement, after what it decided was published; null: nobody looks.
    std::function<void(const SlotTotals&, const JudgedTotals&, PopInstant now)> on_judged = nullptr;
    std::size_t mesh_output_bytes_max = kOutputBytesMax;
    const EventLoop* loop = nullptr;  // for what waits for the disk on a thread; null in a simulation
  };

  /// Opens ledger, record file and table, and puts in force what the last daemon recorded. All that is passed by
  /// reference outlives the pipeline; the configuration may change between calls, by use_rules' caller.
  [[nodiscard]] static Result<std::unique_ptr<Pipeline>> open(const Config& config, Setup setup);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Joins the mesh and begins to flush and to beat.
  [[nodiscard]] Status start();
  /// A hit from a ring.
  void add(const Hit& hit, PopInstant now) { collector_->add(hit, now); }
  /// Sends what was collected; every flush_interval by itself.
  void flush();
  /// Sends for the last time, before a stop: nothing new is added. What waits because this node's clock is off is given
  /// up; what waits for its clock to be judged is sent when it is.
  void finish();
  /// Everything that was flushed has been answered.
  [[nodiscard]] bool is_idle() const { return store_->idle(); }
  /// Tells the peers that this node goes.
  void say_goodbye();

  /// The rules with numbers of this node; nothing is changed but the ledger's register of numbers.
  [[nodiscard]] Result<SharedRules> numbered(const RuleSet& rules);
  void use_rules(SharedRules rules);
  void use_clock_tolerance(milliseconds tolerance) { clock_guard_.use_tolerance(tolerance); }

  [[nodiscard]] const SharedRules& rules() const { return rules_; }
  [[nodiscard]] const RuleNames& rule_names() const { return rule_names_; }  // of rules that are gone, too
  [[nodiscard]] Ledger& ledger() { return *ledger_; }
  [[nodiscard]] const Collector& collector() const { return *collector_; }
  [[nodiscard]] CounterStore& store() { return *store_; }
  [[nodiscard]] MemcachedStore* memcached() { return memcached_; }  // null: counters live in this process
  [[nodiscard]] Mitigations& mitigations() { return *mitigations_; }
  /// From now on fuses are judged by what these say of the requests of this node.
  void watch_requests(std::function<const RequestTotals&()> totals) { requests_ = std::move(totals); }
  [[nodiscard]] const FuseControl& fuses() const { return *fuses_; }
  [[nodiscard]] BrakeControl& brakes() { return *brakes_; }
  [[nodiscard]] Mesh* mesh() { return mesh_.get(); }  // null: a PoP of one node
  [[nodiscard]] Publisher& publisher() { return *publisher_; }
  [[nodiscard]] const ClockGuard& clock_guard() const { return clock_guard_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  Pipeline(const Config& config, Setup setup);
  [[nodiscard]] Status open_rules();
  [[nodiscard]] Status open_count();
  void open_mitigate();
  [[nodiscard]] Status open_publish();
  void take_over();
  [[nodiscard]] Status join_mesh();
  void learn_from_peer();

  [[nodiscard]] std::unordered_set<RuleId> mitigated_rules() const;
  [[nodiscard]] wire::NodeFigures figures() const;
  void beat();
  void judge_fuses();
  void learn_names();
  void look_at_lags(const MeshStatus& mesh);
  void hand_over(PopInstant now);
  void judge(const SlotTotals& totals, PopInstant now);
  void tell_degraded(const Rule& rule, const Key& key, const JudgedTotals& judged);
  void pass_on(const Mitigation& mitigation, const Origin& origin);

  const Config& config_;
  Setup setup_;
  std::mt19937_64 seeds_;
  std::uint64_t incarnation_;

  // The stages, in the order of the path; they go in the reverse order.
  SharedRules rules_;
  RuleNames rule_names_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Publisher> publisher_;
  std::optional<Collector> collector_;
  std::unique_ptr<CounterStore> store_;
  MemcachedStore* memcached_ = nullptr;  // store_, when it is one
  std::optional<Mitigations> mitigations_;
  std::optional<ClosedKeys> closed_keys_;
  std::unique_ptr<BrakeControl> brakes_;
  std::unique_ptr<FuseControl> fuses_;
  std::unique_ptr<Mesh> mesh_;

  ClockGuard clock_guard_;
  std::optional<ClockWatch> clock_watch_;  // empty: there is no mesh
  std::vector<HitSum> sums_;
  LogLimiter degraded_log_;
  std::function<const RequestTotals&()> requests_;
  Timer flush_timer_;
  Timer beat_timer_;
  Timer fresh_start_timer_;
  Timer fuse_timer_;
};

}  // namespace popgate
