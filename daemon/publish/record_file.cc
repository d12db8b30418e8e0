// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "daemon/file_error.h"
#include "daemon/mitigate/precedence.h"

namespace popgate {
namespace {

constexpr std::uint64_t kFileMagic = 0x3143455254475050;  // "PPGTREC1", little-endian
constexpr std::size_t kPlacesPerRead = 128;               // 64 KiB

struct FileHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t record_bytes;
  std::uint64_t node;
  std::uint64_t counter_promised;
  std::uint32_t checksum;  // of all before it
  std::uint32_t reserved;
};

std::uint32_t checksum_of(const FileHeader& header) {
  const auto* bytes = reinterpret_cast<const Bytef*>(&header);
  return static_cast<std::uint32_t>(crc32(crc32(0, nullptr, 0), bytes, offsetof(FileHeader, checksum)));
}

off_t offset_of(std::size_t place) { return static_cast<off_t>(kRecordHeaderBytes + place * kRecordBytes); }

static_assert(kRecordHeaderBytes % kRecordBytes == 0 && 4096 % kRecordBytes == 0, "a record lies within one page");

}  // namespace

Result<std::unique_ptr<RecordFile>> RecordFile::open(const Options& options, std::vector<std::string>& notes) {
  auto lock = FileLock::take(options.path);
  if (!lock) return Error{lock.error()};
  const auto boot = read_boot_id();
  if (!boot) return Error{boot.error()};
  std::unique_ptr<RecordFile> file(new RecordFile(options, *std::move(lock), *boot));
  if (const Status opened = file->open_file(notes); !opened) return Error{opened.error()};
  return file;
}

Result<std::unique_ptr<RecordFile>> RecordFile::open_read_only(const Options& options) {
  const auto boot = read_boot_id();
  if (!boot) return Error{boot.error()};
  std::unique_ptr<RecordFile> file(new RecordFile(options, std::nullopt, *boot));
  file->fd_.reset(::open(options.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file->fd_.is_open()) return file_error(options.path, "cannot open");
  if (const std::string reason = file->take_over(); !reason.empty()) return Error{options.path + ": " + reason};
  return file;
}

Status RecordFile::open_file(std::vector<std::string>& notes) {
  const auto open_or_create = [this] {
    fd_.reset(::open(options_.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    return fd_.is_open();
  };
  if (!open_or_create()) return file_error(options_.path, "cannot open");
  if (const std::string reason = take_over(); !reason.empty()) {
    const std::string aside = options_.path + ".refused";
    if (std::rename(options_.path.c_str(), aside.c_str()) != 0) return file_error(options_.path, "cannot rename");
    notes.push_back(options_.path + ": records not read: " + reason + "; renamed to " + aside +
                    ", a fresh file is begun");
    if (!open_or_create()) return file_error(options_.path, "cannot create");
  }
  return write_header();
}

// Why the file cannot be used; empty when it can. Sets found_ when it holds a daemon's records.
std::string RecordFile::take_over() {
  struct stat status = {};
  if (fstat(fd_.get(), &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (status.st_size == 0) return "";
  FileHeader header{};
  if (pread(fd_.get(), &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) return "no whole header";
  if (header.magic != kFileMagic) return "not a record file";
  const bool is_known = header.version >= kRecordFileVersionMin && header.version <= kRecordFileVersion;
  if (!is_known || header.record_bytes != kRecordBytes) {
    return "version " + std::to_string(header.version) + ", allowed: " + std::to_string(kRecordFileVersionMin) +
           " to " + std::to_string(kRecordFileVersion);
  }
  if (header.checksum != checksum_of(header)) return "damaged header";
  if (header.node == options_.node) counter_promised_ = header.counter_promised;
  found_ = true;
  return "";
}

Status RecordFile::write_header() {
  FileHeader header{kFileMagic, kRecordFileVersion, kRecordBytes, options_.node, counter_promised_, 0, 0};
  header.checksum = checksum_of(header);
  if (pwrite(fd_.get(), &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header)) return {};
  return file_error(options_.path, "cannot write");
}

// Before the first decision with a counter beyond the promise is recorded or published.
Status RecordFile::promise_counter(const Mitigation& mitigation) {
  if (mitigation.version.node != options_.node || mitigation.version.counter <= counter_promised_) return {};
  const std::uint64_t kept = std::exchange(counter_promised_, mitigation.version.counter + kCounterStep);
  Status written = write_header();
  if (!written) counter_promised_ = kept;  // what is not on disk is no promise: the next one tries again
  return written;
}

Result<RecordFile::Load> RecordFile::load(const std::function<void(Mitigation)>& give, HostInstant now,
                                          PopInstant wall) {
  Load load;
  load.found = found_;
  load.counter = counter_promised_;
  std::array<std::byte, kPlacesPerRead * kRecordBytes> chunk;
  while (places_.size() < kRecordPlacesMax) {
    const ssize_t bytes = pread(fd_.get(), chunk.data(), chunk.size(), offset_of(places_.size()));
    if (bytes < 0) return file_error(options_.path, "cannot read");
    const std::size_t places = static_cast<std::size_t>(bytes) / kRecordBytes;
    for (std::size_t i = 0; i < places; ++i) {
      load_place(std::span(chunk).subspan(i * kRecordBytes).first<kRecordBytes>(), give, now, wall, load);
    }
    if (places < kPlacesPerRead) break;  // the rest is not a whole record
  }
  counts_.damaged += load.damaged;
  return load;
}

void RecordFile::load_place(ConstRecordBytes bytes, const std::function<void(Mitigation)>& give, HostInstant now,
                            PopInstant wall, Load& load) {
  const auto place = static_cast<Place>(places_.size());
  places_.emplace_back();
  const auto record = decode_record(bytes);
  if (!record) {
    if (!is_free_record(bytes)) ++load.damaged;
    free_.push_back(place);
    return;
  }
  Mitigation mitigation = record->mitigation;
  mitigation.until = record_end(*record, boot_, now, wall);
  if (mitigation.version.node == options_.node) load.counter = std::max(load.counter, mitigation.version.counter);
  const EntryId id{mitigation.key, kind_of(mitigation)};
  if (mitigation.until + kEndedKept <= now || index_.contains(id)) {
    // A second record of one entry can only be what a failed write left: the set that takes both knows which stands.
    if (index_.contains(id)) give(std::move(mitigation));
    if (clear(place)) free_.push_back(place);
    return;
  }
  ++load.records;
  if (record->boot == boot_) {
    hold(place, id, mitigation.until, entry_hash(mitigation));
  } else {
    ++load.rebooted;
    hold(place, id, mitigation.until, convert(place, mitigation) ? entry_hash(mitigation) : 0);
  }
  give(std::move(mitigation));
}

// Once a boot: what the wall clock does from now on no longer moves the end.
bool RecordFile::convert(Place place, const Mitigation& mitigation) {
  std::array<std::byte, kRecordBytes> bytes;
  encode_record({mitigation, boot_}, bytes);
  return write_at(place, bytes).ok();
}

Status RecordFile::put(const Mitigation& mitigation) {
  const EntryId id{mitigation.key, kind_of(mitigation)};
  const std::uint64_t hash = entry_hash(mitigation);
  const auto it = index_.find(id);
  const bool is_new = it == index_.end();
  if (!is_new && places_[it->second].hash == hash && places_[it->second].until == mitigation.until) return {};
  if (is_new && index_.size() >= options_.records_max) {
    ++counts_.refused;
    return Error{options_.path + ": full: " + std::to_string(options_.records_max) + " records"};
  }
  if (is_new && free_.empty()) {
    free_.push_back(static_cast<Place>(places_.size()));
    places_.emplace_back();
  }
  const Place place = is_new ? free_.back() : it->second;
  std::array<std::byte, kRecordBytes> bytes;
  encode_record({mitigation, boot_}, bytes);
  Status written = promise_counter(mitigation);
  if (written) written = write_at(place, bytes);
  if (!written) {
    if (!is_new) places_[place].hash = 0;  // the next put writes again
    return written;
  }
  if (is_new) free_.pop_back();
  hold(place, id, mitigation.until, hash);
  return {};
}

Status RecordFile::erase(const EntryId& id) {
  const auto it = index_.find(id);
  if (it == index_.end()) return {};
  const Place place = it->second;
  // The index keeps what could not be erased: its place must not be used again.
  if (!clear(place)) return file_error(options_.path, "cannot write");
  index_.erase(it);
  places_[place] = {};
  free_.push_back(place);
  return {};
}

std::size_t RecordFile::sweep(std::size_t places_max, HostInstant now) {
  std::size_t erased = 0;
  for (std::size_t i = std::min(places_max, places_.size()); i > 0; --i) {
    sweep_next_ = sweep_next_ + 1 < places_.size() ? sweep_next_ + 1 : 0;
    const Held& held = places_[sweep_next_];
    if (!held.used || held.until + kEndedKept > now) continue;
    const EntryId id = held.id;
    if (erase(id)) ++erased;
  }
  return erased;
}

std::vector<Key> RecordFile::keys() const {
  std::vector<Key> keys;
  keys.reserve(index_.size());
  for (const auto& [id, place] : index_) keys.push_back(id.key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void RecordFile::hold(Place place, const EntryId& id, HostInstant until, std::uint64_t hash) {
  places_[place] = {id, until, hash, true};
  index_[id] = place;
}

Status RecordFile::write_at(Place place, ConstRecordBytes bytes) {
  const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(), offset_of(place));
  if (written == static_cast<ssize_t>(bytes.size())) {
    ++counts_.written;
    return {};
  }
  ++counts_.failed;
  return file_error(options_.path, "cannot write");
}

bool RecordFile::clear(Place place) {
  constexpr std::array<std::byte, kRecordBytes> kZeros{};
  return write_at(place, kZeros).ok();
}

void RecordFile::visit(const MetricVisitor& visitor) const {
  const auto count = [](std::uint64_t value) { return static_cast<double>(value); };
  const Metric metrics[] = {
      {"popgate_publish_records", "records", "Records in the record file now.", count(records()), false, "", ""},
      {"popgate_publish_records_max", "records", "How many the record file takes.", count(options_.records_max), false,
       "", ""},
      {"popgate_publish_records_written_total", "records", "Writes to the record file.", count(counts_.written), true,
       "", ""},
      {"popgate_publish_records_failed_total", "records", "Writes to the record file that failed.",
       count(counts_.failed), true, "", ""},
      {"popgate_publish_records_refused_total", "records", "Records that found the record file full.",
       count(counts_.refused), true, "", ""},
      {"popgate_publish_records_damaged_total", "records", "Damaged records that were skipped at start.",
       count(counts_.damaged), true, "", ""},
  };
  for (const Metric& metric : metrics) visitor(metric);
}

}  // namespace popgate
