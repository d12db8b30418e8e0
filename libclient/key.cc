// SPDX-License-Identifier: Apache-2.0
#include "libclient/key.h"

#include <endian.h>
#include <sodium.h>

#include <cstring>

#include "libclient/hex.h"

namespace popgate {
namespace {

constexpr char kBase64Url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kNameBytesMax = 64;

// Both halves are read most significant byte first, so that keys, tags and texts agree on every host.
std::uint64_t load_big_endian(const unsigned char* bytes) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return be64toh(value);
}

void store_big_endian(std::uint64_t value, unsigned char* bytes) noexcept {
  value = htobe64(value);
  std::memcpy(bytes, &value, sizeof value);
}

struct Digest {
  unsigned char bytes[16];
  [[nodiscard]] std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes), sizeof bytes}; }
};

Digest siphash(const HashSecret& secret, const void* data, std::size_t bytes) noexcept {
  Digest out;
  static_assert(sizeof out.bytes == crypto_shorthash_siphashx24_BYTES);
  crypto_shorthash_siphashx24(out.bytes, static_cast<const unsigned char*>(data), bytes, secret.bytes.data());
  return out;
}

}  // namespace

KeyBuilder::KeyBuilder(const HashSecret& secret, CounterIdentity identity) noexcept : secret_(secret) {
  store_big_endian(identity, buffer_.data());
  used_ = 8;
}

void KeyBuilder::put(std::string_view bytes) noexcept {
  // Cannot overflow: every caller bounds its bytes, and a rule has at most kKeyPartsMax parts. Dropped if it ever did.
  if (bytes.size() > buffer_.size() - used_) return;
  if (!bytes.empty()) std::memcpy(buffer_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

void KeyBuilder::put_length(std::size_t bytes) noexcept {
  const std::uint32_t length = htobe32(static_cast<std::uint32_t>(bytes));
  put({reinterpret_cast<const char*>(&length), sizeof length});
}

void KeyBuilder::add(KeyPart type, std::string_view name, std::string_view value) noexcept {
  const char head[2] = {static_cast<char>(type), 1};
  put({head, sizeof head});
  put_length(name.size());
  put(name.size() <= kNameBytesMax ? name : siphash(secret_, name.data(), name.size()).view());
  put_length(value.size());
  put(value.size() <= kKeyPartBytesMax ? value : siphash(secret_, value.data(), value.size()).view());
}

void KeyBuilder::add_missing(KeyPart type, std::string_view name) noexcept {
  const char head[2] = {static_cast<char>(type), 0};
  put({head, sizeof head});
  put_length(name.size());
  put(name.size() <= kNameBytesMax ? name : siphash(secret_, name.data(), name.size()).view());
}

Key KeyBuilder::finish() noexcept {
  const Digest digest = siphash(secret_, buffer_.data(), used_);
  return {load_big_endian(digest.bytes), load_big_endian(digest.bytes + 8)};
}

std::string key_text(const Key& key) {
  char text[kKeyTextBytes];
  write_key_text(key, text);
  return text;
}

void write_key_text(const Key& key, char (&out)[kKeyTextBytes]) noexcept {
  char* next = out;
  for (const std::uint64_t half : {key.hi, key.lo}) {
    for (int shift = 60; shift >= 0; shift -= 4) *next++ = kHexDigits[half >> shift & 15];
  }
  *next = '\0';
}

bool parse_key_text(std::string_view text, Key& out) noexcept {
  if (text.size() != 32) return false;
  std::uint64_t halves[2] = {0, 0};
  for (std::size_t i = 0; i < 32; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return false;
    halves[i / 16] = halves[i / 16] << 4 | static_cast<std::uint64_t>(digit);
  }
  out = {halves[0], halves[1]};
  return true;
}

void write_key_tag(const Key& key, char (&out)[kKeyTagChars]) noexcept {
  unsigned char bytes[18] = {};  // two bytes of zeros fill the last group of three
  store_big_endian(key.hi, bytes);
  store_big_endian(key.lo, bytes + 8);
  for (std::size_t i = 0; i < kKeyTagChars; ++i) {
    const std::size_t bit = i * 6;
    const unsigned pair = static_cast<unsigned>(bytes[bit / 8]) << 8 | bytes[bit / 8 + 1];
    out[i] = kBase64Url[pair >> (10 - bit % 8) & 63];
  }
}

}  // namespace popgate
