// SPDX-License-Identifier: Apache-2.0
//
// Counters in a consistent-hashed cluster of memcached, straight or through twemproxy: the CounterStore of a PoP.
//
// It routes every sum to the shard that libmemcached's placement gives its key, and reports every key's totals when the
// shard has answered. A key whose shard does not answer, or has more to do than it can take, is reported at once with
// what is known and this node's own hits, so that no failure of a shard delays this node's own judgement.
//
// With another ring to read (`counters.also_read`) a key is reported twice: when its shard has answered, with what was
// last read in the other ring; and, as fresh, when the other ring has answered a question put to it after that. So of
// two nodes that count one key in two rings, the later one to add sees the sum. What the other ring cannot tell leaves
// the upper bound unknown, and is no reason for a degraded mode: the ring in which this node counts answers.
//
// Threads: the event loop's.
// Invariants: those of CounterStore; of KeyWindows (the ledger); of Shard (at most once).
//             A slot's total is the sum over the rings of the largest total that each was ever read to have.
// Limits: keys_max keys in each ring.
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "daemon/count/counter_ring.h"
#include "daemon/count/counter_store.h"
#include "daemon/count/peer_lags.h"
#include "daemon/count/sum_intake.h"
#include "daemon/result.h"

namespace popgate {

class MemcachedStore final : public CounterStore {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    Ledger* ledger = nullptr;
    SharedRules rules;
    milliseconds flush_interval{50};
    std::uint32_t keys_max = 0;
    std::uint64_t seed = 0;  // for back-off and generation keys
  };

  /// As CounterRing::make, for both rings.
  [[nodiscard]] static Result<std::unique_ptr<MemcachedStore>> make(const CountersConfig& config, Setup setup,
                                                                    TotalsFunction totals);

  void submit(std::span<const HitSum> sums, PopInstant now) override;
  void tick(PopInstant now) override;
  void hold_increments(Hold hold) override;
  void drop_unsent() override { ring_->windows().drop_unsent(); }
  void use_rules(SharedRules rules) override { setup_.rules = std::move(rules); }
  [[nodiscard]] std::vector<SlotCount> slots_of(const Key& key) const override;
  [[nodiscard]] bool counters_lost(const Key& key, PopInstant now) const override;
  [[nodiscard]] bool is_degraded(const Key& key) const override;
  [[nodiscard]] std::optional<CountLag> lag() const override { return ring_->lag(); }
  void use_peer_lags(std::span<const PeerLag> peers, PopInstant now) override;
  [[nodiscard]] PeerDoubt peer_doubt(const Key& key) const override;
  [[nodiscard]] bool idle() const override;
  [[nodiscard]] std::vector<ShardStatus> shards() const override { return ring_->status().shards; }
  [[nodiscard]] std::vector<RingStatus> rings() const override;
  void visit(const MetricVisitor& visitor) const override;

  [[nodiscard]] const Placement& placement() const { return ring_->placement(); }
  /// Begins a check of the ring (`popgatectl ring-check`); the store outlives it.
  [[nodiscard]] std::unique_ptr<RingCheck> check_ring(RingCheck::DoneFunction done) {
    return ring_->check(std::move(done));
  }

 private:
  MemcachedStore(Setup setup, TotalsFunction totals);
  [[nodiscard]] Status also_read(const CountersConfig& config, CounterRing::Setup ring_setup);
  void answered(WindowIndex index, bool fresh, PopInstant now);
  void answered_by_other(WindowIndex other_index, bool fresh, PopInstant now);
  void ask_other(const KeyWindow& window, PopInstant now);
  void report(const KeyWindow& window, bool fresh, PopInstant now);
  void report_waiting(PopInstant now);
  void list_slots(const KeyWindow& window, std::vector<SlotCount>& out) const;
  [[nodiscard]] bool is_other_lost(const KeyWindow& window, PopInstant now) const;

  Setup setup_;
  TotalsFunction totals_;
  SumIntake intake_;
  std::mt19937_64 random_;
  std::unique_ptr<CounterRing> ring_;
  std::unique_ptr<CounterRing> other_;  // may be null
  std::optional<PeerLags> peer_lags_;   // never empty once made
  std::vector<WindowIndex> submitted_;  // keys of the sums being submitted, each once or more
  std::vector<SlotCount> slot_counts_;  // of the key being reported
  Hold hold_ = Hold::kNone;
};

}  // namespace popgate
