// SPDX-License-Identifier: Apache-2.0
//
// The table and the rules that a client checks against, as one immutable pair, replaced while checks go on.
//
// Two sides: the *checker* (the thread that owns the client) and the *updater* (popgate_tick: the same thread, or the
// tick thread). The checker never waits: it marks `uses_` odd, loads `current_`, works, marks `uses_` even. The updater
// stores a new `current_` and gives the old pair back only when no check can hold it any more.
//
//   checker: uses_ := odd (seq_cst)     A        updater: current_ := new (seq_cst)   C
//            load current_ (seq_cst)    B                 load uses_ (seq_cst)        D
//            ... uses_ := even (release)
//   In the single order of the seq_cst operations either D comes after A, so the updater sees the check and waits for
//   `uses_` to move on; or D comes before A, hence C before B, and the check sees the new pair. When D reads an even
//   value, or later another value than at D, that store was a release at the end of every check that could hold the old
//   pair, and D acquires it: the checks' reads come before the unmapping.
//
// With one thread the order of the program is enough, and the checker's stores are plain.
//
// Threads: Use by the checker; the rest by the updater.
// Invariants: 1. A pair that a Use holds is neither changed nor unmapped.
//             2. At most kSnapshotsMax pairs are mapped: the current one, and one that is coming or going. While a
//                check is stuck with the old pair (in the embedder's header function, say), ready() is false and the
//                updater leaves what is new in the socket.
#pragma once

#include <atomic>
#include <cstdint>

#include "libclient/check/table_reader.h"
#include "libclient/mapping.h"
#include "libclient/match/rules_view.h"

namespace popgate {

struct Snapshot {
  Mapping table_memory;
  Mapping rules_memory;
  TableReader table;
  RulesView rules;
};

inline constexpr unsigned kSnapshotsMax = 2;

class Snapshots {
 public:
  /// The checker's hold on the current pair during one check.
  class Use {
   public:
    explicit Use(Snapshots& snapshots) noexcept : snapshots_(snapshots) {
      const std::uint64_t uses = snapshots.uses_.load(std::memory_order_relaxed);  // only the checker writes it
      if ((uses & 1) != 0) return;  // a check from within a check: it gets nothing
      holds_ = true;
      const auto order = snapshots.concurrent_ ? std::memory_order_seq_cst : std::memory_order_relaxed;
      snapshots.uses_.store(uses + 1, order);
      snapshot_ = snapshots.current_.load(std::memory_order_seq_cst);
    }
    ~Use() {
      if (!holds_) return;
      const std::uint64_t uses = snapshots_.uses_.load(std::memory_order_relaxed);
      snapshots_.uses_.store(uses + 1, std::memory_order_release);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    /// Null while there is none.
    [[nodiscard]] const Snapshot* get() const noexcept { return snapshot_; }
    /// False when this is a check from within a check.
    [[nodiscard]] bool holds() const noexcept { return holds_; }

   private:
    Snapshots& snapshots_;
    const Snapshot* snapshot_ = nullptr;
    bool holds_ = false;
  };

  /// Before the first use: true when checker and updater are two threads.
  void set_concurrent(bool concurrent) noexcept { concurrent_ = concurrent; }

  /// Gives the old pair back when no check holds it. True when next() may be filled.
  [[nodiscard]] bool ready() noexcept;
  /// The pair to fill; unknown to checks until publish(). Only after ready() returned true.
  [[nodiscard]] Snapshot& next() noexcept { return pool_[next_]; }
  void publish() noexcept;

 private:
  Snapshot pool_[kSnapshotsMax];
  unsigned next_ = 0;                               // updater
  bool retiring_ = false;                           // updater: next() is the old pair, still to be given back
  std::uint64_t seen_ = 0;                          // updater: uses_ when it was replaced
  bool concurrent_ = false;                         // set before threads exist
  std::atomic<const Snapshot*> current_{nullptr};   // updater writes, checker reads; see above
  alignas(64) std::atomic<std::uint64_t> uses_{0};  // checker writes, updater reads; see above
};

}  // namespace popgate
