// SPDX-License-Identifier: Apache-2.0
//
// The record file: every mitigation this node holds, on disk, so that the next daemon knows what the table's 16-byte
// entries stand for, and `explain` can say why.
//
// A header page, then records of 512 bytes at fixed places (record_format.h), each written by one pwrite within one
// page: a daemon killed at any instruction leaves whole records. Nothing is synced: what a loss of power takes with it
// comes back from the peers; waiting for a disk would hold up the event loop. When the disk is full or read-only,
// writing fails, the daemon goes on from memory, and what could not be written is counted. Nothing is renamed into
// place either, only out of the way: a new file is begun under its name, and one without a whole header is refused.
//
// The header also promises that this node's decision counter never passed a number, which is moved on in steps before
// it is reached. The records alone cannot say that: a decision that ended takes its counter with it.
//
// Threads: the event loop's.
// Invariants: 1. One record at most for each key and kind.
//             2. A place is reused only after it was overwritten by zeros, or found damaged at load.
// Limits: records_max records; further ones are refused and counted. A record goes kEndedKept after its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/metrics.h"
#include "daemon/mitigate/mitigations.h"
#include "daemon/publish/file_lock.h"
#include "daemon/publish/record_format.h"
#include "daemon/result.h"
#include "libclient/file_descriptor.h"

namespace popgate {

inline constexpr std::uint32_t kRecordFileVersion = 2;  // also reads 1: a record that is not labelled
inline constexpr std::uint32_t kRecordFileVersionMin = 1;
inline constexpr std::size_t kRecordHeaderBytes = 4096;
inline constexpr std::uint64_t kCounterStep = 4096;                    // decisions between two writes of the header
inline constexpr std::size_t kRecordPlacesMax = std::size_t{1} << 27;  // 64 GiB; what lies beyond is not read

class RecordFile {
 public:
  struct Options {
    std::string path;
    std::size_t records_max = 0;
    NodeId node = 0;  // whose counter the header keeps
  };
  struct Load {
    bool found = false;         // the file was there, and could be read
    std::uint64_t counter = 0;  // this node decided nothing with a higher one
    std::size_t records = 0;    // given
    std::size_t damaged = 0;    // skipped; their places are used again
    std::size_t rebooted = 0;   // of the given: ends converted by the wall clock
  };

  /// A file of another version is renamed to `path`.refused, and a fresh one is begun (`notes` says so).
  [[nodiscard]] static Result<std::unique_ptr<RecordFile>> open(const Options& options,
                                                                std::vector<std::string>& notes);

  /// One that is only loaded, on a disk that cannot be written. Takes no lock: that is a file, too.
  [[nodiscard]] static Result<std::unique_ptr<RecordFile>> open_read_only(const Options& options);

  /// Gives every record that has not ended for longer than kEndedKept, its end on this host's clock. Once, first.
  [[nodiscard]] Result<Load> load(const std::function<void(Mitigation)>& give, HostInstant now, PopInstant wall);

  /// Writes the record of an entry, unless it is there already.
  [[nodiscard]] Status put(const Mitigation& mitigation);
  /// No error when there is none.
  [[nodiscard]] Status erase(const EntryId& id);
  /// Erases records that have ended, among the next `places_max`. How many.
  std::size_t sweep(std::size_t places_max, HostInstant now);

  [[nodiscard]] bool holds(const EntryId& id) const { return index_.contains(id); }
  [[nodiscard]] std::size_t records() const { return index_.size(); }
  /// Every key with a record, each once, in order.
  [[nodiscard]] std::vector<Key> keys() const;
  void visit(const MetricVisitor& visitor) const;

 private:
  using Place = std::uint32_t;
  struct Held {
    EntryId id;
    HostInstant until{};
    std::uint64_t hash = 0;  // entry_hash of what is on disk
    bool used = false;
  };
  struct IdHash {
    std::size_t operator()(const EntryId& id) const noexcept {
      return KeyHash{}(id.key) + static_cast<std::size_t>(id.kind);
    }
  };
  struct Counts {
    std::uint64_t written = 0;
    std::uint64_t failed = 0;
    std::uint64_t refused = 0;
    std::uint64_t damaged = 0;
  };

  RecordFile(Options options, std::optional<FileLock> lock, const BootId& boot)
      : options_(std::move(options)), lock_(std::move(lock)), boot_(boot) {}
  [[nodiscard]] Status open_file(std::vector<std::string>& notes);
  [[nodiscard]] std::string take_over();
  [[nodiscard]] Status write_header();
  [[nodiscard]] Status promise_counter(const Mitigation& mitigation);
  [[nodiscard]] Status write_at(Place place, ConstRecordBytes bytes);
  [[nodiscard]] bool clear(Place place);
  [[nodiscard]] bool convert(Place place, const Mitigation& mitigation);
  void load_place(ConstRecordBytes bytes, const std::function<void(Mitigation)>& give, HostInstant now, PopInstant wall,
                  Load& load);
  void hold(Place place, const EntryId& id, HostInstant until, std::uint64_t hash);

  Options options_;
  std::optional<FileLock> lock_;
  BootId boot_;
  FileDescriptor fd_;
  bool found_ = false;
  std::uint64_t counter_promised_ = 0;
  std::vector<Held> places_;
  std::vector<Place> free_;
  std::unordered_map<EntryId, Place, IdHash> index_;
  std::size_t sweep_next_ = 0;
  Counts counts_;
};

}  // namespace popgate
