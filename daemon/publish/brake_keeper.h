// SPDX-License-Identifier: Apache-2.0
//
// Puts the brakes where they work and where they last: the words of the table's header, which workers read, and the
// file, which the next daemon reads.
//
//     publish   the words get the stamp of the newest order, then say what is off (one store each); the file is written
//               on a thread (durable_file.h), and again when another order came meanwhile
//
// A disk that stalls so keeps no worker blocking and no loop waiting. Until the file is written, the stamp in the table
// is newer than the file's: the next daemon of a killed one then keeps off what the words say is off (brake_words.h),
// and what the file says is off. An `on` that never reached the disk is forgotten: in doubt a brake stays off.
//
// What could not be written is tried again by itself, and until it is, is_written() is false.
//
// Threads: the event loop's; the file is written on a thread of its own.
// Invariants: 1. Nothing that stays off is on for a moment.
//             2. One write at a time, each of everything; the last one begun is of the newest orders.
// Limits: one try every kBrakeRetryInterval, for as long as it takes; at most one set of bytes waits for its turn.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/background_task.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/mitigate/brakes.h"
#include "daemon/publish/brake_file.h"
#include "daemon/publish/table_file.h"

namespace popgate {

inline constexpr milliseconds kBrakeRetryInterval{1000};

class BrakeKeeper {
 public:
  /// `file`: null when there is no state_dir. `loop`: null: written at once and waited for (a test, a simulation).
  BrakeKeeper(TableFile& table, std::unique_ptr<BrakeFile> file, const EventLoop* loop);
  /// Waits for the disk, and writes what waits for its turn.
  ~BrakeKeeper();
  BrakeKeeper(const BrakeKeeper&) = delete;
  BrakeKeeper& operator=(const BrakeKeeper&) = delete;

  /// Gives `brakes` what the daemon before left; what only the table's words know is ordered off for this node. Nothing
  /// is published before all of it is: each order by itself would take the others' words away. `rule_of`: the rule of a
  /// number, 0 when it is not known. Once, before any worker is attached. `notes` takes sentences for the log.
  void restore(Brakes& brakes, const std::function<RuleId(RuleNumber)>& rule_of, PopInstant wall,
               std::vector<std::string>& notes);
  /// Puts in force what restore() gave. Once, after it.
  void finish_restore(const Brakes& brakes, const RuleSet& rules, HostInstant now);
  void publish(const Brakes& brakes, const RuleSet& rules, HostInstant now);
  /// The rules change: until entries have been judged by them, what is off under the rules before stays off as well.
  void change_rules(const Brakes& brakes, const RuleSet& before, const RuleSet& rules);
  /// The rules have changed, and with them the numbers: nothing to write.
  void use_rules(const Brakes& brakes, const RuleSet& rules);

  /// Writes again what could not be written, when it is time. Now and then.
  void retry(const Brakes& brakes, HostInstant now);

  /// The disk has not answered yet.
  [[nodiscard]] bool is_pending() const { return writing_ && writing_->is_running(); }
  /// False when the latest order would be forgotten by a reboot.
  [[nodiscard]] bool is_written() const { return !failed_ && !is_pending(); }
  void visit(const MetricVisitor& visitor) const;

 private:
  void write(const Brakes& brakes, HostInstant now);
  void begin_writing(std::string bytes);
  void finish_writing(const Status& written, HostInstant now);

  TableFile& table_;
  std::unique_ptr<BrakeFile> file_;
  std::unique_ptr<BackgroundTask> writing_;
  std::optional<std::string> next_;  // waits until the write before is done
  bool restoring_ = false;
  bool is_owed_ = false;  // an order was given while restoring
  bool failed_ = false;   // the last write
  HostInstant retry_at_{};
  std::uint64_t unwritten_ = 0;
  LogLimiter log_;
};

}  // namespace popgate
