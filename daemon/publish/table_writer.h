// SPDX-License-Identifier: Apache-2.0
//
// The daemon's end of the mitigation table: what is to be enforced goes in, what has ended comes out, and the heartbeat
// tells workers that somebody is there.
//
// A key that finds no room (a full neighbourhood, or a full table) is refused, counted, and tried again as entries end.
// A live entry is never evicted for it: otherwise a flood of new clients could free an old offender.
//
// Threads: the event loop's.
// Limits: the configured number of entries; twice as many places, so that neighbourhoods are rarely full.
//         kSweepSlotsPerCall and kRetriesPerCall a sweep; kWaitingMax refused keys wait, further ones are only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/metrics.h"
#include "daemon/mitigate/mitigation.h"
#include "daemon/publish/table_editor.h"
#include "daemon/publish/table_file.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kSweepSlotsPerCall = 8192;  // about 30 us
inline constexpr std::size_t kRetriesPerCall = 64;
inline constexpr std::size_t kWaitingMax = 65536;
inline constexpr std::chrono::seconds kSweepIntervalMax{1};  // the daemon sweeps at least this often
static_assert(kSweepIntervalMax * (std::int64_t{kTableBucketsMax} * kEntriesPerBucket / kSweepSlotsPerCall) <=
                  kTableSweepMax,
              "every ended entry is swept before its `until` could look like the future");

/// Places for twice the entries.
[[nodiscard]] std::uint32_t bucket_count_for(std::size_t entries);

class TableWriter {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TableWriter>> open(const std::string& path, std::size_t entries_max,
                                                                 std::uint64_t incarnation,
                                                                 std::vector<std::string>& notes);

  /// Makes the table hold exactly `wanted`. Once, before anything else; workers see the old entries until then.
  void reconcile(std::span<const Enforcement> wanted, HostInstant now);

  /// False when the key found no room; it then waits.
  bool put(const Enforcement& wanted, HostInstant now);
  void remove(const Key& key);
  void heartbeat(HostInstant now) { file_->beat(now); }
  /// Deletes ended entries and tries waiting keys, a bounded part at a time. True when another call soon would find
  /// more to do.
  bool sweep(HostInstant now);

  [[nodiscard]] int read_only_descriptor() const { return file_->read_only_descriptor(); }
  [[nodiscard]] std::size_t bytes() const { return file_->bytes(); }
  [[nodiscard]] std::size_t entries() const { return editor_.entries(); }
  [[nodiscard]] std::size_t entries_max() const { return entries_max_; }
  [[nodiscard]] bool holds(const Key& key) const { return editor_.holds(key); }
  /// Keys that found no room and are tried again; at most kWaitingMax.
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] TableFile& file() { return *file_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  TableWriter(std::unique_ptr<TableFile> file, std::uint32_t bucket_count, std::size_t entries_max);
  void wait_for_room(const Enforcement& wanted);
  void retry_waiting(HostInstant now);

  struct Counts {
    std::uint64_t inserted = 0;
    std::uint64_t changed = 0;
    std::uint64_t removed = 0;
    std::uint64_t ended = 0;
    std::uint64_t refused = 0;
    std::uint64_t adopted = 0;
    std::uint64_t adoption_deleted = 0;
  };

  std::unique_ptr<TableFile> file_;
  TableEditor editor_;
  std::size_t entries_max_;
  std::map<Key, Enforcement> waiting_;  // ordered, so that retries can go round
  Key retry_after_;
  Counts counts_;
};

}  // namespace popgate
