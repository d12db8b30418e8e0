// SPDX-License-Identifier: Apache-2.0
#include "libclient/check/table_reader.h"

#include <bit>
#include <cstring>
#include <optional>

#include "libclient/check/table_answer.h"

namespace popgate {
namespace {

struct MappedWords {
  const std::atomic<std::uint64_t>* first;
  // Acquire: pairs with the writer's release stores; on x86-64 a plain load.
  [[nodiscard]] std::uint64_t load(std::size_t word) const noexcept {
    return first[word].load(std::memory_order_acquire);
  }
};

// Acquire: pairs with the writer's release stores, so that a word seen means that all words stored before it are.
struct MappedBrakes {
  const TableHeader& header;
  [[nodiscard]] bool all_off() const noexcept { return header.all_off.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::uint32_t count() const noexcept { return header.rules_off_count.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t slot(std::uint32_t i) const noexcept {
    return header.rules_off[i].load(std::memory_order_acquire);
  }
};

const std::atomic<std::uint64_t>* first_word(const std::byte* table) noexcept {
  return reinterpret_cast<const std::atomic<std::uint64_t>*>(table + kTableHeaderBytes);
}

}  // namespace

bool TableReader::open(std::span<const std::byte> bytes, const char*& reason) noexcept {
  table_ = nullptr;
  bucket_count_ = 0;
  reason = "";
  struct {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t bucket_count;
  } head;  // copied once: what is checked is what is used, even if the bytes change meanwhile
  static_assert(offsetof(TableHeader, bucket_count) == 12 && sizeof head == 16);
  if (bytes.size() < kTableHeaderBytes) {
    reason = "table is shorter than its header";
  } else if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kBucketBytes != 0) {
    reason = "table is not mapped at a multiple of 64 bytes";
  } else {
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.magic != kTableMagic) {
      reason = "not a mitigation table";
    } else if (head.version != kTableVersion) {
      reason = "mitigation table of another version";
    } else if (!std::has_single_bit(head.bucket_count) || head.bucket_count < kTableBucketsMin ||
               head.bucket_count > kTableBucketsMax) {
      reason = "mitigation table with an impossible number of buckets";
    } else if (bytes.size() < table_bytes(head.bucket_count)) {
      reason = "mitigation table is shorter than its header says";
    }
  }
  if (*reason != '\0') return false;
  table_ = bytes.data();
  bucket_count_ = head.bucket_count;
  return true;
}

HostInstant TableReader::heartbeat() const noexcept {
  if (table_ == nullptr) return HostInstant{};
  const auto* header = reinterpret_cast<const TableHeader*>(table_);
  return HostInstant(microseconds(header->heartbeat_us.load(std::memory_order_relaxed)));
}

template <typename Clock>
TableAnswer TableReader::answer(const Key& key, const Clock& clock) const noexcept {
  if (table_ == nullptr) return {};
  const auto now_if_fresh = [&]() noexcept -> std::optional<HostInstant> {
    const HostInstant now = clock();
    // Relaxed: nothing is ordered by the heartbeat; a value some moments old makes no difference against 15 days.
    if (!heartbeat_is_fresh(heartbeat().time_since_epoch().count(), now)) return std::nullopt;
    return now;
  };
  const MappedBrakes brakes{*reinterpret_cast<const TableHeader*>(table_)};
  const auto found = search_enforced(MappedWords{first_word(table_)}, brakes, bucket_count_, key, now_if_fresh);
  if (!found) return {};
  const TableValue& value = found->entry.value;
  TableAnswer answer{true, value.rule, value.flags, value.admit, found->entry.remaining};
  if (found->turned_off) answer.flags |= kTableFlagLogOnly;
  return answer;
}

TableAnswer TableReader::look_up(const Key& key) const noexcept {
  return answer(key, [] { return HostClock::now(); });
}

TableAnswer TableReader::look_up(const Key& key, HostInstant now) const noexcept {
  return answer(key, [now] { return now; });
}

}  // namespace popgate
