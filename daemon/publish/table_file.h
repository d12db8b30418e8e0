// SPDX-License-Identifier: Apache-2.0
//
// The file that holds the mitigation table: made, or taken over from the daemon before, and mapped for writing.
//
// A file on tmpfs and not a memfd, because the next daemon must be able to write what workers have mapped read-only
// (a memfd sealed against writing stays sealed for it too; an unsealed one can be made writable by a worker). Mode 0600
// and a descriptor opened O_RDONLY: a worker of another user can read it and nothing else. A worker of the same user
// could truncate it and end the daemon with SIGBUS: daemon and workers run as different users.
//
// Nothing is synced: a table does not outlive the boot that it was made in, and one of another boot is refused.
//
// Threads: the event loop's.
// Invariants: 1. The path never names a half-made table: a new one is renamed into place when its header is complete.
//             2. Every page of the file is allocated before it is mapped: a full tmpfs is an error, not a SIGBUS later.
//             3. A file that is not a whole table of this version, size, boot and user is renamed to `path`.refused,
//                and a fresh one is begun; workers that still map the old one keep its entries until they attach anew.
//                One that only has another size tells the fresh one what was off (brake_words.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/publish/brake_words.h"
#include "daemon/publish/file_lock.h"
#include "daemon/publish/table_memory.h"
#include "daemon/result.h"
#include "libclient/check/table_format.h"
#include "libclient/file_descriptor.h"

namespace popgate {

class TableFile final : public TableMemory {
 public:
  /// `notes` takes sentences for the log: a refused file, a path that is not on tmpfs.
  [[nodiscard]] static Result<std::unique_ptr<TableFile>> open(const std::string& path, std::uint32_t bucket_count,
                                                               std::uint64_t incarnation,
                                                               std::vector<std::string>& notes);
  ~TableFile() override;
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  [[nodiscard]] std::uint64_t load(std::size_t word) const override;
  void store(std::size_t word, std::uint64_t value) override;
  void beat(HostInstant now);
  [[nodiscard]] BrakeMemory& brakes() { return brakes_; }
  /// Of the newest order that the brakes' words hold.
  [[nodiscard]] std::uint64_t brakes_stamp() const;
  void store_brakes_stamp(std::uint64_t stamp);

  /// Opened O_RDONLY, for workers; stays this object's.
  [[nodiscard]] int read_only_descriptor() const { return read_only_.get(); }
  [[nodiscard]] std::size_t bytes() const { return table_bytes(bucket_count_); }
  /// True when an earlier daemon's table was taken over.
  [[nodiscard]] bool adopted() const { return adopted_; }

 private:
  class HeaderBrakes final : public BrakeMemory {
   public:
    explicit HeaderBrakes(const TableFile& file) : file_(file) {}
    [[nodiscard]] std::uint32_t load(std::size_t word) const override;
    void store(std::size_t word, std::uint32_t value) override;

   private:
    [[nodiscard]] std::atomic<std::uint32_t>& at(std::size_t word) const;
    const TableFile& file_;
  };

  TableFile(FileLock lock, std::uint32_t bucket_count) : lock_(std::move(lock)), bucket_count_(bucket_count) {}
  [[nodiscard]] Status map(const std::string& path, int fd);
  [[nodiscard]] TableHeader& header() const { return *reinterpret_cast<TableHeader*>(mapped_); }
  [[nodiscard]] std::atomic<std::uint64_t>* words() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(mapped_ + kTableHeaderBytes);
  }

  FileLock lock_;
  std::uint32_t bucket_count_;
  std::byte* mapped_ = nullptr;
  FileDescriptor read_only_;
  bool adopted_ = false;
  HeaderBrakes brakes_{*this};
};

}  // namespace popgate
