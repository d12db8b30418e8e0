// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/ledger_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <unordered_set>

#include "daemon/disk_room.h"
#include "daemon/file_error.h"
#include "daemon/fnv_hash.h"

namespace popgate {
namespace {

// Over the fields that never change.
std::uint64_t checksum(const LedgerHeader& header) {
  FnvHash hash;
  for (const std::uint32_t field :
       {header.version, header.record_bytes, header.ring_accounts, header.journal_updates}) {
    for (int shift = 0; shift < 32; shift += 8) hash.add(static_cast<unsigned char>(field >> shift));
  }
  return hash.value();
}

// "" when the header is one that this program can read; else what is wrong with it.
std::string header_fault(const LedgerHeader& header, std::size_t file_bytes) {
  if (header.magic != kLedgerMagic) return "not a ledger";
  if (header.checksum != checksum(header)) return "the header's checksum does not match";
  if (header.version != kLedgerVersion) {
    return "version " + std::to_string(header.version) + ", this daemon reads version " +
           std::to_string(kLedgerVersion);
  }
  if (header.record_bytes != sizeof(LedgerRecord) || header.ring_accounts != kRingAccountsMax ||
      header.journal_updates != kJournalUpdatesMax) {
    return "a layout of another build";
  }
  const std::uint32_t rows = header.row_count.load(std::memory_order_relaxed);
  if (rows < kLedgerRowsFirst || rows > kRuleNumbersMax || ledger_bytes(rows) > file_bytes) {
    return std::to_string(rows) + " rows in a file of " + std::to_string(file_bytes) + " bytes";
  }
  return {};
}

std::string journal_fault(const LedgerFile& file) {
  const LedgerJournal& journal = file.journal();
  if (journal.committed.load(std::memory_order_acquire) == 0) return {};
  if (journal.account >= kRingAccountsMax || journal.update_count > kJournalUpdatesMax) return "a damaged journal";
  for (std::uint32_t i = 0; i < journal.update_count; ++i) {
    if (journal.updates[i].rule >= file.row_count() || journal.updates[i].column >= kLedgerColumns) {
      return "a damaged journal";
    }
  }
  return {};
}

std::string rows_fault(const LedgerFile& file) {
  std::unordered_set<RuleId> rules;
  for (RuleNumber number = 1; number < file.row_count(); ++number) {
    const LedgerRecord& record = file.record(number);
    const RuleId rule = record.rule.load(std::memory_order_relaxed);
    if (rule == 0) continue;
    if (!rules.insert(rule).second) return "row " + std::to_string(number) + " belongs to a rule that has one already";
    std::uint64_t left = record.columns[static_cast<int>(LedgerColumn::kDrained)].load(std::memory_order_relaxed);
    for (const LedgerColumn column : {LedgerColumn::kDelivered, LedgerColumn::kUncertain, LedgerColumn::kDropped,
                                      LedgerColumn::kExpired, LedgerColumn::kLost}) {
      const std::uint64_t hits = record.columns[static_cast<int>(column)].load(std::memory_order_relaxed);
      if (hits > left) return "row " + std::to_string(number) + " accounts for more hits than were drained";
      left -= hits;
    }
  }
  return {};
}

// The lock is on the file that `path` names now: another daemon may have renamed a refused one in between.
bool is_named(int fd, const std::string& path) {
  struct stat ours {};
  struct stat named {};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

Result<FileDescriptor> open_locked(const std::string& path) {
  constexpr int kAttemptsMax = 8;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd.is_open()) return file_error(path, "open", errno);
    struct stat status {};
    if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return Error{path + ": not a regular file"};
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return Error{path + ": in use by another daemon"};
      return file_error(path, "flock", errno);
    }
    if (is_named(fd.get(), path)) return fd;
  }
  return Error{path + ": replaced again and again while it was opened"};
}

}  // namespace

// A file without a magic number was never finished, or is new: it is made afresh.
Status LedgerFile::prepare(const std::string& path, std::string& damage) {
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) return file_error(path, "fstat", errno);
  const auto file_bytes = static_cast<std::size_t>(status.st_size);
  std::uint64_t magic = 0;
  if (pread(fd_.get(), &magic, sizeof magic, 0) != sizeof magic || magic == 0) return make(path);
  if (file_bytes < ledger_bytes(kLedgerRowsFirst)) {
    damage = "only " + std::to_string(file_bytes) + " bytes long";
    return {};
  }
  // A sparse file (a copy, say) gets its memory now.
  if (const int error = posix_fallocate(fd_.get(), 0, status.st_size); error != 0) {
    return file_error(path, "no room for the ledger", error);
  }
  if (!mapping_.map(fd_.get(), file_bytes, PROT_READ | PROT_WRITE, true)) {
    return file_error(path, "mmap", errno);
  }
  damage = header_fault(header(), file_bytes);
  if (damage.empty()) damage = journal_fault(*this);
  if (damage.empty()) damage = rows_fault(*this);
  return {};
}

Status LedgerFile::make(const std::string& path) {
  const std::size_t bytes = ledger_bytes(kLedgerRowsFirst);
  if (ftruncate(fd_.get(), 0) != 0) return file_error(path, "ftruncate", errno);
  if (const int error = posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    (void)ftruncate(fd_.get(), 0);
    return Error{file_error(path, "no room for the ledger", error).text + room_text(path, bytes)};
  }
  if (!mapping_.map(fd_.get(), bytes, PROT_READ | PROT_WRITE, true)) return file_error(path, "mmap", errno);
  LedgerHeader& fresh = header();
  fresh.version = kLedgerVersion;
  fresh.record_bytes = sizeof(LedgerRecord);
  fresh.ring_accounts = kRingAccountsMax;
  fresh.journal_updates = kJournalUpdatesMax;
  fresh.checksum = checksum(fresh);
  fresh.row_count.store(kLedgerRowsFirst, std::memory_order_relaxed);
  std::atomic_ref<std::uint64_t>(fresh.magic).store(kLedgerMagic, std::memory_order_release);
  return {};
}

Result<LedgerFile> LedgerFile::open(const std::string& path, std::string& note) {
  LedgerFile file;
  for (const bool refused_before : {false, true}) {
    Result<FileDescriptor> fd = open_locked(path);
    if (!fd) return Error{fd.error()};
    file.fd_ = std::move(*fd);
    std::string damage;
    if (Status status = file.prepare(path, damage); !status) return Error{status.error()};
    if (damage.empty()) return file;
    if (refused_before) break;
    const std::string aside = path + ".refused";
    if (rename(path.c_str(), aside.c_str()) != 0) return file_error(path, "rename", errno);
    note = path + ": " + damage + "; renamed to " + aside + ", a new ledger was started";
    file.mapping_.reset();
  }
  return Error{path + ": a new ledger could not be made"};
}

Result<LedgerFile> LedgerFile::in_memory() {
  LedgerFile file;
  file.fd_.reset(memfd_create("popgate-ledger", MFD_CLOEXEC));
  if (!file.fd_.is_open()) return file_error("ledger in memory", "memfd_create", errno);
  if (Status status = file.make("ledger in memory"); !status) return Error{status.error()};
  return file;
}

bool LedgerFile::grow() {
  if (row_count() >= kRuleNumbersMax) return false;
  const std::uint32_t rows = row_count() * 2;
  if (posix_fallocate(fd_.get(), 0, static_cast<off_t>(ledger_bytes(rows))) != 0) return false;
  Mapping larger;
  if (!larger.map(fd_.get(), ledger_bytes(rows), PROT_READ | PROT_WRITE, true)) return false;
  mapping_ = std::move(larger);
  header().row_count.store(rows, std::memory_order_release);
  return true;
}

}  // namespace popgate
