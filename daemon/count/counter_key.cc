// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_key.h"

#include <charconv>
#include <cstring>

namespace popgate {
namespace {

constexpr std::string_view kVersionPrefix = "pg1:";
constexpr int kRingDigits = 8;

char* put(char* out, std::string_view text) noexcept {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* put_ring(char* out, CounterRingId ring) noexcept {
  for (int shift = 4 * (kRingDigits - 1); shift >= 0; shift -= 4) *out++ = "0123456789abcdef"[ring >> shift & 15];
  return out;
}

char* put_number(char* out, std::int64_t number) noexcept { return std::to_chars(out, out + 20, number).ptr; }

}  // namespace

CounterNames::CounterNames(CounterRingId ring, const Key& key, microseconds slot_length) noexcept {
  char tag[kKeyTagChars];
  write_key_tag(key, tag);
  char* end = put_ring(put(text_, kVersionPrefix), ring);
  end = put(end, ":{");
  end = put(end, {tag, sizeof tag});
  end = put(end, "}:");
  end = put_number(end, slot_length.count());
  *end++ = ':';
  prefix_chars_ = static_cast<std::size_t>(end - text_);
}

std::string_view CounterNames::of(SlotIndex slot) noexcept {
  return {text_, static_cast<std::size_t>(put_number(text_ + prefix_chars_, slot) - text_)};
}

std::string ring_text(CounterRingId ring) {
  char digits[kRingDigits];
  put_ring(digits, ring);
  return {digits, sizeof digits};
}

std::string own_key(CounterRingId ring, std::string_view tag, std::string_view purpose) {
  char digits[kRingDigits];
  put_ring(digits, ring);
  std::string key(kVersionPrefix);
  key.append(digits, sizeof digits).append(":{").append(tag).append("}:").append(purpose);
  return key;
}

}  // namespace popgate
