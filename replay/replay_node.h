// SPDX-License-Identifier: Apache-2.0
//
// One node of a replayed PoP: the daemon's own stages, wired as daemon.cc wires them, on the replay's clock.
//
//     hit -> Collector --flush--> MemoryStore (counters shared by all nodes) --reply--> judge_totals
//         -> Mitigations --news--> the other nodes
//
// A flush reaches the counters half a round trip later, and its reply the node another half; the totals are those that
// the counters held in between, judged with the time at which they arrive.
//
// Threads: one thread.
// Invariants: 1. Every hit that is recorded is accounted in the node's ledger.
// Limits: those of the stages. A node without hits has no events.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "daemon/collect/collector.h"
#include "daemon/collect/ledger.h"
#include "daemon/count/memory_store.h"
#include "daemon/mitigate/mitigations.h"
#include "replay/event_queue.h"

namespace popgate {

/// The replay's host clock shows the log's time.
[[nodiscard]] constexpr HostInstant host_time(PopInstant time) { return HostInstant(time.time_since_epoch()); }
[[nodiscard]] constexpr PopInstant pop_time(HostInstant time) { return PopInstant(time.time_since_epoch()); }

class ReplayNode {
 public:
  struct Setup {
    unsigned index = 0;
    SharedRules rules;
    std::shared_ptr<MemoryCounters> counters;
    std::uint32_t keys_max = 0;
    microseconds flush_interval{0};
    microseconds flush_phase{0};  // nodes do not flush in step
    microseconds round_trip{0};
    std::uint64_t seed = 0;
  };
  struct Callbacks {
    std::function<void(const Key&, RuleNumber, PopInstant, const Rate&)> on_judged;
    std::function<void(const Mitigation&, RuleNumber, PopInstant, const Rate&)> on_decided;
    /// Enforced here from now on; `local`: decided here, to be told to the others.
    std::function<void(const Mitigation&, PopInstant, bool local)> on_enforced;
  };
  ReplayNode(Setup setup, EventQueue& events, Callbacks callbacks);
  ReplayNode(const ReplayNode&) = delete;
  ReplayNode& operator=(const ReplayNode&) = delete;

  void record(const Hit& hit);
  [[nodiscard]] bool enforces(const Key& key) const;
  void hear(const Mitigation& news, NodeId from);

  [[nodiscard]] NodeId id() const { return mitigations_.node(); }
  [[nodiscard]] const Ledger& ledger() const { return *ledger_; }

 private:
  /// SlotTotals that outlive the call which reported them.
  struct Totals {
    Key key;
    RuleNumber rule;
    std::vector<SlotCount> slots;
    bool counters_lost;
  };
  void schedule_flush();
  void flush();
  void submit(const std::vector<HitSum>& sums);
  void judge(const Totals& totals);
  void change(const Mitigation& mitigation, const Origin& origin);

  Setup setup_;
  EventQueue& events_;
  Callbacks callbacks_;
  std::unique_ptr<Ledger> ledger_;
  Collector collector_;
  std::shared_ptr<std::vector<Totals>> reply_;  // of the submit that runs
  MemoryStore store_;
  Mitigations mitigations_;
  std::vector<HitSum> sums_;
  bool flush_is_due_ = false;
};

}  // namespace popgate
