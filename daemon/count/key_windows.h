// SPDX-License-Identifier: Apache-2.0
//
// What this node knows of every key it counts, slot by slot, and where each of its own hits stands.
//
// A hit moves through one slot like this, and every arrow that ends on the right is accounted in the ledger here and
// nowhere else, so that no hit can be accounted twice or not at all:
//
//     take ──► unsent ──begin_send──► in flight ──delivered──► delivered
//                │ ▲                     │  ├─────uncertain──► uncertain
//                │ └──────put_back───────┘  └─────refused────► dropped
//                ├── its slot left the window ───────────────► expired      (no room for its key: dropped)
//                └── its slot is ahead, or this node's clock is off ► dropped
//
// Threads: one thread at a time.
// Invariants: 1. `known` never falls: it is the largest total ever read for that slot.
//             2. A key with hits unsent, in flight, or named by a batch (pinned) keeps its place.
//             3. unsent + in flight + what the ledger was given = what was taken.
// Limits: keys_max keys and slots_max slots (k + 2 a key); beyond either the coldest key that is not pinned makes room,
//         and when every key is pinned the hits of a new one are dropped. A wall clock that steps back can double the
//         slots of the keys it hits, until it has caught up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/collect/hit_sum.h"
#include "daemon/count/counter_store.h"
#include "daemon/count/placement.h"
#include "daemon/window.h"
#include "libclient/key.h"

namespace popgate {

class Ledger;
enum class LedgerColumn : std::uint8_t;

using WindowIndex = std::uint32_t;
inline constexpr WindowIndex kNoWindow = UINT32_MAX;

struct CountedSlot {
  static constexpr PopInstant kNeverRead = PopInstant::min();

  SlotIndex slot = 0;
  std::uint64_t known = 0;      // the largest total ever read
  std::uint64_t last_read = 0;  // the latest; below `known` only after counters were lost
  std::uint64_t unsent = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t uncertain = 0;
  PopInstant read_at = kNeverRead;  // when the command was made whose reply told last_read
  std::uint32_t batch = 0;          // number of the last batch that adds to it
  bool touched = false;             // this node has sent a creation for it that may have worked
};

struct KeyWindow {
  Key key;
  RuleNumber rule = 0;
  ShardIndex shard = 0;
  WindowShape shape;
  std::vector<CountedSlot> slots;  // ascending
  std::uint64_t unsent = 0;        // over all slots
  std::uint32_t pins = 0;          // batches and creation chains that name this window
  std::uint32_t chained = 0;       // creation chains that wait for the next batch
  std::uint32_t batch = 0;         // number of the last batch that names it
  bool due = false;                // waits in its shard's queue
  WindowIndex newer = kNoWindow;   // neighbours among the keys that may make room, by last hit
  WindowIndex older = kNoWindow;
  bool in_use = false;
  bool may_make_room = false;

  [[nodiscard]] KeySlots key_slots() const { return KeySlots(shape, key); }
};

/// Says from when on a read of a slot is final: nothing can be added to it any more.
struct Finality {
  microseconds settle{0};                    // without the clock tolerance, which is the window's
  PopInstant hot_since = PopInstant::min();  // since when every node can send what it holds
};

class KeyWindows {
 public:
  struct Limits {
    std::size_t keys_max = 0;
    std::size_t slots_max = 0;
  };
  using ShardFunction = std::function<ShardIndex(const Key&)>;

  KeyWindows(Limits limits, ShardFunction shard_of, Ledger& ledger);

  /// Takes over the hits of a sum. kNoWindow: they are accounted already (expired, or dropped for want of room). A hit
  /// stamped later than now + D (the wall clock stepped back) is counted in the slot of now + D.
  [[nodiscard]] WindowIndex take(const HitSum& sum, const WindowShape& shape, PopInstant now);

  /// A place for a key that is only read. kNoWindow: there is no room.
  [[nodiscard]] WindowIndex hold(const Key& key, RuleNumber rule, const WindowShape& shape);

  [[nodiscard]] WindowIndex find(const Key& key) const;
  [[nodiscard]] KeyWindow& at(WindowIndex index) { return windows_[index]; }
  [[nodiscard]] const KeyWindow& at(WindowIndex index) const { return windows_[index]; }
  /// nullptr when the window does not hold that slot.
  [[nodiscard]] static CountedSlot* slot_of(KeyWindow& window, SlotIndex slot);
  static CountedSlot& add_slot(KeyWindow& window, SlotIndex slot);

  /// Drops the slots that have left the window; what was unsent in them is expired. What is unsent in slots ahead of
  /// the clock, which was set back, is dropped.
  void expire(WindowIndex index, PopInstant now);
  /// The same for the next `windows` places, round and round; a key that then holds nothing is forgotten.
  void sweep(std::size_t windows, PopInstant now);

  /// Gives up all that is unsent: it was stamped by a clock that was off, and its slots are nobody else's.
  void drop_unsent();

  void pin(WindowIndex index);
  void unpin(WindowIndex index);
  void set_due(WindowIndex index, bool due);

  std::uint64_t begin_send(WindowIndex index, CountedSlot& slot);
  void put_back(WindowIndex index, SlotIndex slot, std::uint64_t hits);
  void delivered(WindowIndex index, SlotIndex slot, std::uint64_t hits);
  void uncertain(WindowIndex index, SlotIndex slot, std::uint64_t hits);
  void refused(WindowIndex index, SlotIndex slot, std::uint64_t hits);

  /// A total that was read by a command made at `asked_at`. True when a counter was lost after `lost_before`: the total
  /// is below one read since then.
  [[nodiscard]] static bool observe(CountedSlot& slot, std::uint64_t total, PopInstant asked_at,
                                    PopInstant lost_before);
  [[nodiscard]] static bool is_final(const KeyWindow& window, const CountedSlot& slot, const Finality& finality);

  /// Whether what is known of every slot that touched the window at `asked_at` was read then or later, or is final.
  [[nodiscard]] static bool is_read_since(const KeyWindow& window, PopInstant asked_at, const Finality& finality);

  /// As estimate wants them; replaces what `out` held.
  static void list_slots(const KeyWindow& window, std::vector<SlotCount>& out);

  [[nodiscard]] std::uint64_t unsent_hits() const { return unsent_hits_; }
  [[nodiscard]] std::uint64_t in_flight_hits() const { return in_flight_hits_; }
  [[nodiscard]] std::size_t key_count() const { return index_.size(); }
  [[nodiscard]] std::uint64_t forgotten_keys() const { return forgotten_keys_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  [[nodiscard]] WindowIndex place_for(const Key& key, RuleNumber rule, const WindowShape& shape);
  [[nodiscard]] bool make_room();
  void forget(WindowIndex index);
  void settle_place(WindowIndex index);
  void link_as_newest(WindowIndex index);
  void unlink(WindowIndex index);
  CountedSlot* leave_flight(WindowIndex index, SlotIndex slot, std::uint64_t hits);
  void give_up_unsent(KeyWindow& window, CountedSlot& slot, LedgerColumn column, std::uint64_t& figure);

  Limits limits_;
  ShardFunction shard_of_;
  Ledger& ledger_;
  std::vector<KeyWindow> windows_;  // places; the ones not in use are listed in free_
  std::vector<WindowIndex> free_;
  std::unordered_map<Key, WindowIndex, KeyHash> index_;
  WindowIndex newest_ = kNoWindow;
  WindowIndex oldest_ = kNoWindow;
  std::size_t reserved_slots_ = 0;  // k + 2 a key
  std::size_t sweep_at_ = 0;
  std::uint64_t unsent_hits_ = 0;
  std::uint64_t in_flight_hits_ = 0;
  std::uint64_t forgotten_keys_ = 0;
  std::uint64_t expired_hits_ = 0;
  std::uint64_t ahead_hits_ = 0;
  std::uint64_t clock_off_hits_ = 0;
  std::uint64_t roomless_hits_ = 0;
};

}  // namespace popgate
