// SPDX-License-Identifier: Apache-2.0
//
// The last stage: what has been decided becomes what workers see. It ties the record file (on disk, what this node
// knows) to the mitigation table (in memory, what it enforces).
//
//     open      -> take both files over from the daemon before, or begin them
//     restore   -> give every record to the set of mitigations
//     reconcile -> make the table hold exactly what is to be enforced, while workers read it
//     publish   -> on every change: the record first, then the table
//
// The record comes first, so that an entry that a killed daemon left in the table can be explained by the next one; an
// entry that nothing explains is deleted. A record that cannot be written (disk full, read-only) does not keep the
// entry from being published: protecting now is worth more than remembering.
//
// Threads: the event loop's.
// Invariants: 1. Until reconcile, workers see the table as the daemon before left it, ends kept.
// Limits: those of TableWriter and RecordFile; kRecordSweepPerCall.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/mitigate/mitigation.h"
#include "daemon/publish/brake_keeper.h"
#include "daemon/publish/record_keeper.h"
#include "daemon/publish/table_writer.h"
#include "daemon/result.h"

namespace popgate {

struct PublisherOptions {
  std::string run_dir;              // tmpfs: mitigations.table
  std::string state_dir;            // disk: mitigations.records; empty: nothing outlives the daemon but the table
  std::uint32_t table_entries = 0;  // Config::table_entries
  std::uint64_t incarnation = 0;
  std::string node;                 // this node's name
  const EventLoop* loop = nullptr;  // for what waits for the disk on a thread; null: it is waited for
};

struct Restored {
  bool found = false;         // there was a record file of this node or its predecessor, and it could be read
  std::uint64_t counter = 0;  // this node decided nothing with a higher one
  std::uint64_t entries = 0;
  std::uint64_t damaged = 0;   // records that were skipped
  std::uint64_t rebooted = 0;  // records of an earlier boot, whose ends come from the wall clock
};

inline constexpr std::size_t kRecordSweepPerCall = 1024;

class Publisher {
 public:
  /// An error when another daemon uses run_dir or state_dir, or the table cannot be made. `notes` takes sentences for
  /// the log: a refused file, a run_dir that is not on tmpfs, a state_dir that cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Publisher>> open(const PublisherOptions& options,
                                                               std::vector<std::string>& notes);

  /// Hands every record to `give` (Mitigations::restore), its end on this host's clock. Once, first. Both functions are
  /// kept, for a state_dir that can be used only later.
  [[nodiscard]] Restored restore(std::function<void(Mitigation)> give, HostInstant now, PopInstant wall);
  /// Makes the table hold what `enforcement` says for every key that was restored or published so far, and nothing
  /// else. Once, after restore; the first heartbeat.
  void reconcile(std::function<std::optional<Enforcement>(const Key&)> enforcement, HostInstant now);

  /// Records the change, then enforces what now holds for its key (nothing: no entry). Before reconcile only records.
  void publish(const Mitigation& mitigation, const std::optional<Enforcement>& enforcement, HostInstant now);
  /// Only what is enforced for the key changes: the rules did.
  void enforce(const Key& key, const std::optional<Enforcement>& enforcement, HostInstant now);

  /// Takes ended entries and records out, a bounded part at a time; at least every kSweepIntervalMax. True when another
  /// call soon would find more.
  bool sweep(HostInstant now);
  /// Tells workers that the daemon lives; every second or so, not before reconcile.
  void heartbeat(HostInstant now);

  /// Opened read-only, for workers; stays the publisher's.
  [[nodiscard]] int table_descriptor() const { return table_->read_only_descriptor(); }
  [[nodiscard]] std::size_t table_bytes() const { return table_->bytes(); }
  [[nodiscard]] std::size_t live_entries() const { return table_->entries(); }
  [[nodiscard]] std::size_t capacity() const { return table_->entries_max(); }
  /// False for a key that is to be enforced means that it found no room, and waits.
  [[nodiscard]] bool holds(const Key& key) const { return table_->holds(key); }
  /// Keys that wait for room: mitigations that this node should enforce and does not.
  [[nodiscard]] std::size_t not_enforced() const { return table_->waiting(); }
  /// Mitigations in force that could not be recorded yet.
  [[nodiscard]] std::size_t not_recorded() const { return records_->unrecorded(); }
  /// What is off: its words are in the table, its file is in state_dir.
  [[nodiscard]] BrakeKeeper& brakes() { return brakes_; }
  [[nodiscard]] const BrakeKeeper& brakes() const { return brakes_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  Publisher(std::unique_ptr<TableWriter> table, std::unique_ptr<RecordKeeper> records, const PublisherOptions& options);

  std::unique_ptr<TableWriter> table_;
  std::unique_ptr<RecordKeeper> records_;
  std::function<std::optional<Enforcement>(const Key&)> enforcement_;
  BrakeKeeper brakes_;
  bool reconciled_ = false;
  std::vector<Key> early_keys_;  // published before reconcile: while records are restored, so bounded like them
  LogLimiter refusal_log_;
};

}  // namespace popgate
