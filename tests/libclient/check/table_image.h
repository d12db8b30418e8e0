// SPDX-License-Identifier: Apache-2.0
//
// A mitigation table in plain memory whose every word a test can set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

#include "libclient/check/table_format.h"

namespace popgate {

class TableImage {
 public:
  explicit TableImage(std::uint32_t bucket_count = kTableBucketsMin, HostInstant heartbeat = HostInstant{})
      : lines_(table_bytes(bucket_count) / sizeof(Line)) {
    auto* header = new (lines_.data()) TableHeader{};
    header->magic = kTableMagic;
    header->version = kTableVersion;
    header->bucket_count = bucket_count;
    set_heartbeat(heartbeat);
  }

  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }
  [[nodiscard]] TableHeader& header() { return *reinterpret_cast<TableHeader*>(lines_.data()); }
  void set_heartbeat(HostInstant t) { header().heartbeat_us.store(t.time_since_epoch().count()); }

  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t index) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(bytes().data() + kTableHeaderBytes)[index];
  }
  void set_entry(std::size_t bucket, std::size_t entry, std::uint64_t tag_word, std::uint64_t value_word) {
    const std::size_t at = bucket_word(bucket) + entry * kWordsPerEntry;
    word(at).store((word(at).load() & kOverflowBit) | tag_word);
    word(at + 1).store(value_word);
  }
  void set_overflow(std::size_t bucket) { word(bucket_word(bucket)).fetch_or(kOverflowBit); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

}  // namespace popgate
