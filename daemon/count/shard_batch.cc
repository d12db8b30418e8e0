// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/shard_batch.h"

#include <charconv>

namespace popgate {
namespace {

constexpr std::chrono::seconds kNever{0};  // as memcached reads it

void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_add(std::string& out, std::string_view key, std::chrono::seconds expiry, std::uint64_t value) {
  char digits[20];
  const auto digit_count = static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits);
  out.append("add ").append(key).append(" 0 ");
  append_number(out, static_cast<std::uint64_t>(expiry.count()));
  out.push_back(' ');
  append_number(out, digit_count);
  out.append("\r\n").append(digits, digit_count).append("\r\n");
}

}  // namespace

void ShardBatch::add_increment(BatchIncrement increment, std::string_view key, std::chrono::seconds expiry) {
  if (increment.creates) {
    append_add(text_, key, expiry, increment.hits);
  } else {
    text_.append("incr ").append(key).push_back(' ');
    append_number(text_, increment.hits);
    text_.append("\r\n");
  }
  increment.end_byte = static_cast<std::uint32_t>(text_.size());
  increments_.push_back(increment);
}

void ShardBatch::add_generation(std::string_view key, std::uint64_t value) {
  append_add(text_, key, kNever, value);
  creates_generation_ = true;
}

void ShardBatch::add_read(WindowIndex window, SlotIndex slot, std::string_view key) {
  if (keys_in_get_ == kGetKeysMax) finish();
  text_.append(keys_in_get_ == 0 ? "get " : " ");
  reads_.push_back({window, slot, static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(key.size())});
  text_.append(key);
  ++keys_in_get_;
}

void ShardBatch::finish() {
  if (keys_in_get_ == 0) return;
  text_.append("\r\n");
  reads_.back().ends_get = true;
  keys_in_get_ = 0;
}

}  // namespace popgate
