// SPDX-License-Identifier: Apache-2.0
//
// A record file may hold anything by the time it is read: each record is refused or read, what is read can be written
// and read again, and a file of such records still takes new ones. The checksums of every second input are made right,
// so that what lies behind them is reached.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "daemon/mitigate/precedence.h"
#include "daemon/publish/record_file.h"

namespace popgate {
namespace {

constexpr HostInstant kNow{std::chrono::seconds(1'000'000)};
constexpr PopInstant kWall{std::chrono::seconds(1'700'000'000)};
using Bytes = std::array<std::byte, kRecordBytes>;

void require(bool condition) {
  if (!condition) std::abort();
}

// Magic, then the CRC-32 of all from byte 8 on.
void make_right(Bytes& record) {
  std::memcpy(record.data(), "REC1", 4);
  const auto sum = static_cast<std::uint32_t>(
      crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(record.data()) + 8, kRecordBytes - 8));
  std::memcpy(record.data() + 4, &sum, sizeof sum);
}

void read_one(const Bytes& bytes) {
  const auto record = decode_record(bytes);
  if (!record) return;
  const HostInstant end = record_end(*record, BootId{}, kNow, kWall);
  require(end <= kNow + kLiftKept && end >= kNow - kLiftKept);
  Bytes again;
  encode_record(*record, again);
  const auto back = decode_record(again);
  require(back.has_value() && entry_hash(back->mitigation) == entry_hash(record->mitigation));
}

std::unique_ptr<RecordFile> open_file(const std::string& path) {
  std::vector<std::string> notes;
  auto opened = RecordFile::open({path, 64, 7}, notes);
  require(opened.ok() && notes.empty());
  return *std::move(opened);
}

void read_file(const std::vector<Bytes>& records) {
  static const std::string path = "/dev/shm/popgate-record-fuzz-" + std::to_string(getpid());
  unlink(path.c_str());
  (void)open_file(path);  // makes a header
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  for (std::size_t i = 0; i < records.size(); ++i) {
    require(pwrite(fd, records[i].data(), kRecordBytes, static_cast<off_t>(kRecordHeaderBytes + i * kRecordBytes)) ==
            static_cast<ssize_t>(kRecordBytes));
  }
  close(fd);

  auto file = open_file(path);
  const auto load = file->load([](Mitigation) {}, kNow, kWall);
  require(load.ok() && load->records + load->damaged <= records.size());
  Mitigation added;
  added.key = {1, 2};
  added.until = kNow + std::chrono::hours(1);
  require(file->put(added).ok());
  file->sweep(64, kNow + std::chrono::minutes(1));
  const std::size_t held = file->records();
  file.reset();

  file = open_file(path);
  const auto again = file->load([](Mitigation) {}, kNow, kWall);
  require(again.ok() && again->found && again->records >= 1);
  require(again->records <= held);
  file.reset();
  unlink(path.c_str());
  unlink((path + ".lock").c_str());
}

void run(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return;
  const bool right = data[0] % 2 == 0;
  std::vector<Bytes> records(1 + bytes / kRecordBytes, Bytes{});
  std::memcpy(records.data(), data, bytes);
  for (Bytes& record : records) {
    if (right) make_right(record);
    read_one(record);
  }
  read_file(records);
}

}  // namespace
}  // namespace popgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  popgate::run(data, bytes);
  return 0;
}
