// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/table_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "daemon/boot_id.h"
#include "daemon/disk_room.h"
#include "daemon/file_error.h"
#include "daemon/result.h"

namespace popgate {
namespace {

// Why nothing in an existing file can be believed; empty when its header can.
std::string strangeness(int fd, const TableHeader& header, const BootId& boot, ssize_t header_bytes) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (status.st_uid != geteuid()) return "belongs to another user";
  if (header_bytes != static_cast<ssize_t>(sizeof header)) return "shorter than a header";
  if (header.magic != kTableMagic) return "not a mitigation table";
  if (header.version != kTableVersion) {
    return "version " + std::to_string(header.version) + ", allowed: " + std::to_string(kTableVersion);
  }
  if (!std::equal(boot.begin(), boot.end(), header.boot_id)) return "left by another boot of this host";
  return "";
}

// Why the entries of a table of this host cannot be taken over.
std::string misfit(int fd, const TableHeader& header, std::uint32_t bucket_count) {
  if (header.bucket_count != bucket_count) {
    return std::to_string(header.bucket_count) + " buckets, configured: " + std::to_string(bucket_count);
  }
  struct stat status = {};
  if (fstat(fd, &status) != 0) return std::strerror(errno);
  if (status.st_size != static_cast<off_t>(table_bytes(bucket_count))) return "not as long as its header says";
  return "";
}

struct Existing {
  FileDescriptor fd;   // open when it is taken over
  std::string reason;  // why it is not
  TableHeader header{};
  bool has_brakes = false;  // the header's can be believed
};

void look_at_existing(const std::string& path, std::uint32_t bucket_count, const BootId& boot, Existing& found) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open()) {
    if (errno != ENOENT) found.reason = std::strerror(errno);
    return;
  }
  const ssize_t bytes = pread(fd.get(), static_cast<void*>(&found.header), sizeof found.header, 0);
  found.reason = strangeness(fd.get(), found.header, boot, bytes);
  found.has_brakes = found.reason.empty();
  if (found.has_brakes) found.reason = misfit(fd.get(), found.header, bucket_count);
  if (found.reason.empty()) found.fd = std::move(fd);
}

void copy_brakes(const TableHeader& from, TableHeader& to) {
  to.all_off.store(from.all_off.load());
  to.rules_off_count.store(from.rules_off_count.load());
  to.brakes_stamp.store(from.brakes_stamp.load());
  for (std::size_t i = 0; i < kTableRulesOffMax; ++i) to.rules_off[i].store(from.rules_off[i].load());
}

// Under another name until its header is complete; what was there stays there until then.
Result<FileDescriptor> create(const std::string& path, std::uint32_t bucket_count, const BootId& boot,
                              const Existing& refused, std::vector<std::string>& notes) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // of a daemon that was killed here; the lock is ours
  FileDescriptor fd(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return file_error(unfinished, "cannot create", errno);
  const int code = posix_fallocate(fd.get(), 0, static_cast<off_t>(table_bytes(bucket_count)));
  if (code != 0) {
    ::unlink(unfinished.c_str());
    return Error{file_error(unfinished, "no room for the table", code).text +
                 room_text(path, table_bytes(bucket_count))};
  }
  TableHeader header{};
  header.magic = kTableMagic;
  header.version = kTableVersion;
  header.bucket_count = bucket_count;
  std::copy(boot.begin(), boot.end(), header.boot_id);
  if (refused.has_brakes) copy_brakes(refused.header, header);
  if (pwrite(fd.get(), static_cast<const void*>(&header), sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
    return file_error(unfinished, "cannot write", errno);
  }
  if (!refused.reason.empty()) {
    const std::string aside = path + ".refused";
    const bool renamed = std::rename(path.c_str(), aside.c_str()) == 0;
    notes.push_back(path + ": table not taken over: " + refused.reason +
                    (renamed ? "; renamed to " + aside : "; it is replaced") + ", a fresh one is begun");
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return file_error(path, "cannot write", errno);
  return fd;
}

void note_unless_tmpfs(const std::string& path, int fd, std::vector<std::string>& notes) {
  struct statfs filesystem = {};
  if (fstatfs(fd, &filesystem) == 0 && filesystem.f_type == TMPFS_MAGIC) return;
  notes.push_back(path +
                  ": not on tmpfs; a slow or full disk can then delay requests. Put run_dir on tmpfs, as /run is");
}

}  // namespace

Result<std::unique_ptr<TableFile>> TableFile::open(const std::string& path, std::uint32_t bucket_count,
                                                   std::uint64_t incarnation, std::vector<std::string>& notes) {
  auto lock = FileLock::take(path);
  if (!lock) return Error{lock.error()};
  const auto boot = read_boot_id();
  if (!boot) return Error{boot.error()};

  std::unique_ptr<TableFile> file(new TableFile(*std::move(lock), bucket_count));
  Existing existing;
  look_at_existing(path, bucket_count, *boot, existing);
  FileDescriptor fd = std::move(existing.fd);
  file->adopted_ = fd.is_open();
  if (!fd.is_open()) {
    auto created = create(path, bucket_count, *boot, existing, notes);
    if (!created) return Error{created.error()};
    fd = *std::move(created);
  }
  if (const Status mapped = file->map(path, fd.get()); !mapped) return Error{mapped.error()};
  note_unless_tmpfs(path, fd.get(), notes);
  file->header().incarnation.store(incarnation, std::memory_order_relaxed);
  return file;
}

Status TableFile::map(const std::string& path, int fd) {
  fchmod(fd, 0600);
  // A file that was taken over may have holes.
  if (const int code = posix_fallocate(fd, 0, static_cast<off_t>(bytes())); code != 0) {
    return file_error(path, "cannot allocate", code);
  }
  void* address = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return file_error(path, "cannot map", errno);
  mapped_ = static_cast<std::byte*>(address);
  // Through /proc, so that it is the same file whatever the path names by now.
  read_only_ = FileDescriptor(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
  if (!read_only_.is_open()) return file_error(path, "cannot open read-only", errno);
  return {};
}

TableFile::~TableFile() {
  if (mapped_ != nullptr) munmap(mapped_, bytes());
}

// The only writer reads what it wrote itself, or what a dead one wrote before the lock was taken.
std::uint64_t TableFile::load(std::size_t word) const { return words()[word].load(std::memory_order_relaxed); }

// Release: pairs with the readers' acquire loads.
void TableFile::store(std::size_t word, std::uint64_t value) { words()[word].store(value, std::memory_order_release); }

void TableFile::beat(HostInstant now) {
  // Release: a reader that finds the table fresh again finds what was adopted before.
  header().heartbeat_us.store(now.time_since_epoch().count(), std::memory_order_release);
}

std::uint64_t TableFile::brakes_stamp() const { return header().brakes_stamp.load(std::memory_order_relaxed); }

void TableFile::store_brakes_stamp(std::uint64_t stamp) {
  // Release: whoever reads the stamp reads the words that it stands for, or newer ones.
  header().brakes_stamp.store(stamp, std::memory_order_release);
}

std::atomic<std::uint32_t>& TableFile::HeaderBrakes::at(std::size_t word) const {
  TableHeader& header = file_.header();
  if (word == kAllOff) return header.all_off;
  if (word == kCount) return header.rules_off_count;
  POPGATE_ASSERT(word - kFirstSlot < kTableRulesOffMax);
  return header.rules_off[word - kFirstSlot];
}

// The only writer reads what it wrote itself, or what a dead one wrote before the lock was taken.
std::uint32_t TableFile::HeaderBrakes::load(std::size_t word) const { return at(word).load(std::memory_order_relaxed); }

// Release: pairs with the readers' acquire loads.
void TableFile::HeaderBrakes::store(std::size_t word, std::uint32_t value) {
  at(word).store(value, std::memory_order_release);
}

}  // namespace popgate
