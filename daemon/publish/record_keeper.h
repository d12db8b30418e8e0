// SPDX-License-Identifier: Apache-2.0
//
// The record file, also while it cannot be written: a disk that is full or read-only costs no mitigation.
//
// What could not be recorded is in force all the same; it waits here and is tried again, and so is a file that could
// not be opened. A file that can be read but not written gives what it holds. So a restart forgets something only when
// it comes before the disk has room again.
//
// A file that can be opened only later is opened and read on a thread: at its bound that takes seconds, and on a disk
// that has just come back from its fault, as long as that likes. What it holds is given a part at a time, and no entry
// is written into it before all is given: a daemon that could not read its former decisions numbers its own anew, and
// they may be the lesser ones.
//
// Threads: the event loop's; a file that is opened later, on a thread of its own until it is read.
// Limits: kUnrecordedMax entries wait (unrecorded.h); further ones end with the daemon, counted. kRetriesPerTurn of
//         them are tried every kRecordRetryInterval, none after the first that fails. kGivenPerTurn entries of a file
//         that was read later are given in a turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/background_task.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/mitigate/mitigation.h"
#include "daemon/publish/record_file.h"
#include "daemon/publish/unrecorded.h"
#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kRetriesPerTurn = 1024;
inline constexpr std::size_t kGivenPerTurn = 1024;
inline constexpr milliseconds kRecordRetryInterval{1000};

class RecordKeeper {
 public:
  using GiveFunction = std::function<void(Mitigation)>;

  /// An empty path: nothing is ever recorded. `loop`: null: a file is opened later at once and waited for (a test, a
  /// simulation).
  RecordKeeper(RecordFile::Options options, const EventLoop* loop);

  /// An error when another daemon has the file. That it cannot be used now is a note.
  [[nodiscard]] Status open(std::vector<std::string>& notes);
  /// As RecordFile::load; what a file holds that can be opened only later goes to `give`, too.
  [[nodiscard]] RecordFile::Load load(GiveFunction give, HostInstant now, PopInstant wall);

  void put(const Mitigation& mitigation, HostInstant now);
  [[nodiscard]] bool holds(const EntryId& id) const;
  /// Every key with a record, each once, in order.
  [[nodiscard]] std::vector<Key> keys() const { return file_ ? file_->keys() : read_keys_; }
  std::size_t sweep(std::size_t places_max, HostInstant now) { return file_ ? file_->sweep(places_max, now) : 0; }
  /// Tries again what could not be done. Returns the keys of entries that were given.
  [[nodiscard]] std::vector<Key> retry(HostInstant now);

  /// Entries in force that a restart would forget.
  [[nodiscard]] std::size_t unrecorded() const { return unrecorded_.size(); }
  void visit(const MetricVisitor& visitor) const;

 private:
  /// A file that was opened later, and what it held.
  struct Reopened {
    std::unique_ptr<RecordFile> file;  // null: it still cannot be used
    std::vector<Mitigation> entries;
    std::vector<std::string> notes;
  };
  [[nodiscard]] static Reopened reopened(const RecordFile::Options& options, HostInstant now, PopInstant wall);
  void reopen(HostInstant now);
  void use(Reopened reopened);
  [[nodiscard]] bool is_giving() const { return !to_give_.empty(); }
  [[nodiscard]] std::vector<Key> give_some();
  void wait(const Mitigation& mitigation, HostInstant now);
  void record_waiting(HostInstant now);

  RecordFile::Options options_;
  std::unique_ptr<RecordFile> file_;  // null: it cannot be used now
  std::unique_ptr<RecordFile> read_;  // until load(): one that can only be read
  std::vector<Key> read_keys_;
  GiveFunction give_;
  microseconds wall_ahead_{0};  // of the boot-time clock, when load() was called
  std::vector<Mitigation> to_give_;
  Unrecorded unrecorded_;
  HostInstant retry_at_{};
  std::uint64_t failures_ = 0;
  std::uint64_t given_up_ = 0;
  LogLimiter log_;
  std::unique_ptr<BackgroundTask> opening_;  // last: its thread ends before what it gives to
};

}  // namespace popgate
