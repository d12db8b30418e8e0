// SPDX-License-Identifier: Apache-2.0
//
// The daemon's end of one hit ring: takes hits out, and accounts for them in the ledger in the same step.
//
// The other end belongs to a process that may be broken or hostile, and that may write while this reads. So everything
// is copied out of the ring once, checked, and only the copy is used; and how far the ring was drained is this side's
// own memory and the ledger's, never the ring's.
//
// Threads: the event loop's.
// Invariants: 1. Never reads or writes outside the mapping, whatever the ring holds, and always moves on: garbage is
//                consumed and counted, impossible positions make the reader begin anew at the worker's head.
//             2. A hit is in the ledger before the ring's tail passes it, and is handed on after; a daemon killed in
//                between loses the hit, and the ledger says so.
//             3. What the worker dropped is folded into the ledger once, also across daemons.
// Limits: one drain() takes kDrainBatchMax hits, one fold() looks at kFoldPagesMax pages of 512 rules.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/collect/ledger.h"
#include "daemon/collect/request_totals.h"
#include "daemon/result.h"
#include "libclient/file_descriptor.h"
#include "libclient/mapping.h"
#include "libclient/record/hit_ring_format.h"

namespace popgate {

/// What one ring has shown since it was attached. `drained` and `ring_dropped` are hits; the others events.
struct RingFigures {
  std::uint64_t drained = 0;
  std::uint64_t ring_dropped = 0;  // folded from the worker's counts
  std::uint64_t slots_rejected = 0;
  std::uint64_t positions_rejected = 0;
  std::uint64_t counts_rejected = 0;  // dropped counts that fell, or belong to no rule
};

inline constexpr std::uint64_t kFoldHitsMax = std::uint64_t{1} << 40;  // a rule's drops in one fold; more is garbage
inline constexpr unsigned kFoldPagesMax = 64;
inline constexpr std::uint64_t kRequestsRiseMax = std::uint64_t{1} << 32;  // between two looks; more is garbage

class RingReader {
 public:
  /// Checks seals, size and header before anything else is believed, then whether the id that the ring claims is
  /// `taken`: there is one reader a ring. The ledger must outlive the reader.
  [[nodiscard]] static Result<std::unique_ptr<RingReader>> open(FileDescriptor ring, Ledger& ledger,
                                                                const std::function<bool(const RingId&)>& taken = {});
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  [[nodiscard]] const RingId& id() const { return id_; }
  [[nodiscard]] const std::string& worker_name() const { return worker_name_; }
  [[nodiscard]] const RingFigures& figures() const { return figures_; }

  /// Looks how far the worker has come; hits up to there were stamped before this returns. Returns hits that wait.
  std::uint64_t look();
  [[nodiscard]] std::uint64_t waiting() const { return head_ - tail_; }
  /// Takes up to `slots_max`, at most kDrainBatchMax, of the slots that look() saw. The result is valid until the next
  /// call; garbage is left out.
  [[nodiscard]] std::span<const Hit> drain(std::uint64_t slots_max = kDrainBatchMax);
  /// Takes over what the worker has dropped since the last fold. True when there is more to look at.
  bool fold();
  /// Makes the next fold look at every count, also when the worker's total says that nothing changed: a worker that is
  /// killed between the two leaves the total behind.
  void refold();

  /// Adds what the worker has checked since the last call, or since it was attached, to the totals.
  void take_requests(RequestTotals& totals);

  /// Adds, per rule, what waits in the ring (`waiting`), and what was dropped and not folded (`dropped`), to the
  /// sums. For stating the account; reads the whole ring.
  void add_pending(std::map<RuleNumber, std::uint64_t>& waiting, std::map<RuleNumber, std::uint64_t>& dropped) const;

 private:
  struct Shape {  // read from the header once: it may change under us
    std::uint32_t slots = 0;
    RingId id;
  };
  [[nodiscard]] static Result<Mapping> map(int ring, Shape& shape);
  RingReader(FileDescriptor ring, Mapping mapping, const Shape& shape, Ledger& ledger);

  [[nodiscard]] RingHeader* header() const { return reinterpret_cast<RingHeader*>(mapping_.data()); }
  [[nodiscard]] std::uint64_t* counts(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t*>(mapping_.data() + offset);
  }
  void resume();
  [[nodiscard]] Hit copy_slot(std::uint64_t position) const;
  [[nodiscard]] bool believable(const Hit& hit) const;
  void add_up(const Hit& hit);
  void skip_to(std::uint64_t head);
  void fold_page(std::uint32_t first_rule);
  void fold_rule(RuleNumber rule, std::uint64_t count);
  [[nodiscard]] std::uint64_t dropped_of(RuleNumber rule) const;
  [[nodiscard]] std::uint64_t folded_of(RuleNumber rule) const;
  /// The first page of counts at or after `rule` that holds any; kRuleNumbersMax when there is none.
  [[nodiscard]] std::uint32_t next_dropped_page(std::uint32_t rule) const;

  FileDescriptor fd_;
  Mapping mapping_;
  std::uint32_t slots_;
  RingId id_;
  Ledger& ledger_;
  std::string worker_name_;
  RingAccount account_ = 0;
  std::uint64_t head_ = 0;  // as seen by look()
  std::uint64_t tail_ = 0;
  std::uint64_t dropped_seen_;                               // dropped_total when the last complete fold began
  std::uint64_t dropped_now_ = 0;                            // when the fold that is going on began
  std::uint32_t fold_next_ = 0;                              // the rule at which it goes on
  std::array<Hit, kDrainBatchMax> hits_;                     // the batch, as copied and found good
  std::vector<RuleHits> sums_;                               // the batch, per rule
  std::array<std::uint16_t, 2 * kDrainBatchMax> sum_index_;  // rule -> place in sums_ + 1; open addressing
  std::uint64_t requests_seen_ = 0;
  std::array<std::uint64_t, kRingFusedMax> blocked_seen_{};
  RingFigures figures_;
};

}  // namespace popgate
