// SPDX-License-Identifier: Apache-2.0
//
// The CounterStore on MemoryCounters: every sum is delivered, and every key reported, within submit().
//
// Each node's store keeps its own view of what it has read, as the store on memcached does, so that the replay of
// several nodes shows what each of them would know.
//
// Threads: one thread at a time.
// Invariants: those of CounterStore and KeyWindows.
// Limits: keys_max keys in this node's view; MemoryCounters bounds the counters.
#pragma once

#include <memory>
#include <vector>

#include "daemon/count/counter_store.h"
#include "daemon/count/key_windows.h"
#include "daemon/count/memory_counters.h"
#include "daemon/count/sum_intake.h"

namespace popgate {

class MemoryStore final : public CounterStore {
 public:
  struct Setup {
    std::shared_ptr<MemoryCounters> counters;
    Ledger* ledger = nullptr;
    SharedRules rules;
    std::uint32_t keys_max = 0;
  };
  MemoryStore(Setup setup, TotalsFunction totals);

  void submit(std::span<const HitSum> sums, PopInstant now) override;
  void tick(PopInstant now) override;
  void use_rules(SharedRules rules) override { setup_.rules = std::move(rules); }
  [[nodiscard]] std::vector<SlotCount> slots_of(const Key& key) const override;
  [[nodiscard]] bool counters_lost(const Key& key, PopInstant now) const override;
  [[nodiscard]] bool idle() const override { return true; }
  void visit(const MetricVisitor& visitor) const override;

 private:
  static constexpr std::size_t kSlotsPerKey = kSlotsDefault + 2;
  static constexpr std::size_t kSweptPerTick = 4096;

  void deliver(WindowIndex index, PopInstant now);
  void read_and_report(WindowIndex index, PopInstant now);

  Setup setup_;
  TotalsFunction totals_;
  SumIntake intake_;
  KeyWindows windows_;
  std::uint32_t flush_number_ = 0;
  std::vector<WindowIndex> submitted_;  // pinned until they are reported
  std::vector<SlotCount> slot_counts_;
};

}  // namespace popgate
