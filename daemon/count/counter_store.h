// SPDX-License-Identifier: Apache-2.0
//
// Where hits are counted: adds sums, and reports the totals of every slot that touches the window of each key it added
// to.
//
// Two stores: MemoryStore (counters in this process: a PoP of one node, replay) and MemcachedStore (a consistent-hashed
// cluster, straight or through twemproxy). Both account every hit to the ledger exactly once: delivered, uncertain,
// dropped or expired.
//
// Threads: the event loop's. Nothing here blocks.
// Invariants: 1. An increment whose reply was lost is never sent again.
//             2. A report's `known` never falls: it is the largest total ever read for that slot.
// Limits: keys_max keys; beyond it the coldest key without anything in flight makes room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/collect/hit_sum.h"
#include "daemon/count/count_lag.h"
#include "daemon/metrics.h"
#include "daemon/rules.h"

namespace popgate {

/// One slot of one key as this node knows it.
struct SlotCount {
  SlotIndex slot = 0;
  std::uint64_t known = 0;   // largest total ever read
  std::uint64_t unsent = 0;  // own hits certainly not in `known`: not handed to a connection yet
  std::uint64_t hidden = 0;  // own hits that may or may not be in `known`: in flight or uncertain
};

/// What count hands to estimate, for one key after a reply (or when the key's shard cannot be reached: `fresh` is
/// false).
struct SlotTotals {
  Key key;
  RuleNumber rule = 0;
  std::span<const SlotCount> slots;  // ascending; slots that are not listed hold 0; valid during the call only
  bool fresh = false;                // every slot that is not final was just read
  bool counters_lost = false;   // within W + l + 2D of a detected loss of counters on the key's shard: hi is unknown
  bool degraded = false;        // the key's shard cannot be counted on: the rule's on_counter_failure applies
  bool clock_in_doubt = false;  // own hits may bear stamps that the known totals do not fit
  PeerDoubt peers{};            // what peers have not counted yet
};

/// One shard, for `popgatectl status`.
struct ShardStatus {
  std::string name;
  bool reachable = false;  // it answers
  bool degraded = false;   // it cannot be counted on (degraded_state.h), or this node's clock is off
};

/// Why nothing is sent.
enum class Hold : std::uint8_t {
  kNone,
  kUnjudged,  // nobody has compared this node's clock with the others' yet
  kClockOff,  // it is off, and its slots are not its peers': no shard can be counted on
};

/// One ring of shards, for `popgatectl status`.
struct RingStatus {
  std::string id;  // in the name of every counter
  std::vector<ShardStatus> shards;
};

class CounterStore {
 public:
  using TotalsFunction = std::function<void(const SlotTotals&, PopInstant now)>;
  virtual ~CounterStore() = default;

  /// Takes over one flush. Totals follow through the function given at construction, at once or later. A sum of a rule
  /// that no longer exists is dropped and accounted.
  virtual void submit(std::span<const HitSum> sums, PopInstant now) = 0;
  /// Housekeeping, every flush interval: time-outs, expiry, retries of connections.
  virtual void tick(PopInstant now) = 0;
  /// While held, nothing is sent: hits wait, each for its own slot, and are judged by this node alone. Counters in this
  /// process are not concerned, here and below.
  virtual void hold_increments(Hold hold) { (void)hold; }
  /// Gives up, as dropped, what was not sent yet: it bears stamps of a clock that was off.
  virtual void drop_unsent() {}
  /// From now on rules are looked up here. Keys of a rule whose counter identity is unchanged keep what is known.
  virtual void use_rules(SharedRules rules) = 0;
  /// The slots of a key as known now; empty when the key is not held.
  [[nodiscard]] virtual std::vector<SlotCount> slots_of(const Key& key) const = 0;
  /// As in SlotTotals: counters that the key may have had were lost. False when the key is not held.
  [[nodiscard]] virtual bool counters_lost(const Key& key, PopInstant now) const = 0;
  /// What the peers are to know of this node's hits; nothing when counters live in this process.
  [[nodiscard]] virtual std::optional<CountLag> lag() const { return std::nullopt; }
  /// What is known of every configured peer: again and again, as news of them comes.
  virtual void use_peer_lags(std::span<const PeerLag> peers, PopInstant now) { (void)peers, (void)now; }
  /// As in SlotTotals.
  [[nodiscard]] virtual PeerDoubt peer_doubt(const Key& key) const {
    (void)key;
    return {};
  }
  /// As in SlotTotals; also of keys that are not held.
  [[nodiscard]] virtual bool is_degraded(const Key& key) const {
    (void)key;
    return false;
  }
  /// True when nothing is unsent or in flight (a stopping daemon waits for it, within a bound).
  [[nodiscard]] virtual bool idle() const = 0;
  /// In the order of the configuration; none when counters live in this process.
  [[nodiscard]] virtual std::vector<ShardStatus> shards() const { return {}; }
  /// The ring in which hits are counted, and the one that is also read; none when counters live in this process.
  [[nodiscard]] virtual std::vector<RingStatus> rings() const { return {}; }
  virtual void visit(const MetricVisitor& visitor) const = 0;
};

}  // namespace popgate
