// SPDX-License-Identifier: Apache-2.0
//
// Puts the brakes where they work and where they last: the words of the table's header, which workers read, and the
// file, which the next daemon reads.
//
//     publish   what goes off is off for workers (one store each), then the file is written, then what goes on again is
//               on for workers, then the words get the stamp of the newest order
//
// A disk that stalls so does not keep a worker blocking, and a daemon killed in between leaves the file of before or
// after. When the file cannot be written, the stamp in the table is newer than the file's, and the next daemon believes
// the table (brake_words.h).
//
// Threads: the event loop's; the file is synced to the disk on a thread of its own.
// Invariants: 1. Nothing that stays off is on for a moment.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/background_task.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/mitigate/brakes.h"
#include "daemon/publish/brake_file.h"
#include "daemon/publish/table_file.h"

namespace popgate {

class BrakeKeeper {
 public:
  /// `file`: null when there is no state_dir. `loop`: null: never synced to the disk (a test, a simulation).
  BrakeKeeper(TableFile& table, std::unique_ptr<BrakeFile> file, const EventLoop* loop);

  /// Gives `brakes` what the daemon before left; what only the table's words know is ordered off for this node. Nothing
  /// is published before all of it is: each order by itself would take the others' words away. `rule_of`: the rule of a
  /// number, 0 when it is not known. Once, before any worker is attached. `notes` takes sentences for the log.
  void restore(Brakes& brakes, const std::function<RuleId(RuleNumber)>& rule_of, PopInstant wall,
               std::vector<std::string>& notes);
  /// Puts in force what restore() gave. Once, after it.
  void finish_restore(const Brakes& brakes, const RuleSet& rules, HostInstant now);
  void publish(const Brakes& brakes, const RuleSet& rules, HostInstant now);
  /// The rules have changed, and with them the numbers: nothing to write.
  void use_rules(const Brakes& brakes, const RuleSet& rules);

  /// False when the latest order would be forgotten by a reboot.
  [[nodiscard]] bool is_written() const { return written_; }
  void visit(const MetricVisitor& visitor) const;

 private:
  void write(const Brakes& brakes, HostInstant now);
  void sync();

  TableFile& table_;
  std::unique_ptr<BrakeFile> file_;
  std::unique_ptr<BackgroundTask> syncing_;
  bool sync_again_ = false;
  bool restoring_ = false;
  bool is_owed_ = false;  // an order was given while restoring
  bool written_ = true;
  std::uint64_t unwritten_ = 0;
  LogLimiter log_;
};

}  // namespace popgate
