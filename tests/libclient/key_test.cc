// SPDX-License-Identifier: Apache-2.0
#include "libclient/key.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <string>

namespace popgate {
namespace {

HashSecret secret_of(std::uint8_t first) {
  HashSecret secret;
  for (std::size_t i = 0; i < secret.bytes.size(); ++i) secret.bytes[i] = static_cast<std::uint8_t>(first + i);
  return secret;
}

Key key_of(KeyPart type, std::string_view name, std::string_view value) {
  KeyBuilder builder(secret_of(0), 7);
  builder.add(type, name, value);
  return builder.finish();
}

// The bytes are written out by hand and hashed by libsodium: an independent path to the same value.
TEST(Key, is_siphash_of_the_identity_and_the_typed_length_prefixed_parts) {
  const std::string bytes = std::string("\0\0\0\0\0\0\0\7", 8) + std::string("\2\1", 2) + std::string("\0\0\0\1", 4) +
                            "a" + std::string("\0\0\0\2", 4) + "xy";
  unsigned char digest[16];
  crypto_shorthash_siphashx24(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                              secret_of(0).bytes.data());
  std::string expected;
  for (const unsigned char byte : digest) {
    expected.push_back("0123456789abcdef"[byte >> 4]);
    expected.push_back("0123456789abcdef"[byte & 15]);
  }
  EXPECT_EQ(key_text(key_of(KeyPart::kHeader, "a", "xy")), expected);
}

TEST(Key, missing_and_empty_differ) {
  KeyBuilder missing(secret_of(0), 7);
  missing.add_missing(KeyPart::kHeader, "a");
  EXPECT_NE(missing.finish(), key_of(KeyPart::kHeader, "a", ""));
}

TEST(Key, parts_cannot_run_into_each_other) {
  KeyBuilder one(secret_of(0), 7);
  one.add(KeyPart::kHost, "", "ab");
  one.add(KeyPart::kPath, "", "c");
  KeyBuilder other(secret_of(0), 7);
  other.add(KeyPart::kHost, "", "a");
  other.add(KeyPart::kPath, "", "bc");
  EXPECT_NE(one.finish(), other.finish());
}

TEST(Key, secret_identity_type_and_name_each_matter) {
  const Key key = key_of(KeyPart::kHeader, "a", "x");
  KeyBuilder other_secret(secret_of(1), 7);
  other_secret.add(KeyPart::kHeader, "a", "x");
  EXPECT_NE(other_secret.finish(), key);
  KeyBuilder other_identity(secret_of(0), 8);
  other_identity.add(KeyPart::kHeader, "a", "x");
  EXPECT_NE(other_identity.finish(), key);
  EXPECT_NE(key_of(KeyPart::kCookie, "a", "x"), key);
  EXPECT_NE(key_of(KeyPart::kHeader, "b", "x"), key);
}

TEST(Key, long_values_that_differ_in_their_last_byte_differ) {
  const std::string long_value(10'000, 'x');
  EXPECT_NE(key_of(KeyPart::kHeader, "a", long_value + "1"), key_of(KeyPart::kHeader, "a", long_value + "2"));
  EXPECT_NE(key_of(KeyPart::kHeader, "a", long_value), key_of(KeyPart::kHeader, "a", long_value + "1"));
}

TEST(Key, as_many_parts_as_a_rule_may_have_at_their_longest_all_matter) {
  const auto build = [](char last) {
    KeyBuilder builder(secret_of(0), 7);
    for (std::size_t i = 0; i < kKeyPartsMax; ++i) {
      std::string value(kKeyPartBytesMax, 'v');
      if (i + 1 == kKeyPartsMax) value.back() = last;
      builder.add(KeyPart::kHeader, std::string(64, 'n'), value);
    }
    return builder.finish();
  };
  EXPECT_NE(build('1'), build('2'));
}

TEST(Key, text_is_read_back) {
  const Key key{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(key_text(key), "0123456789abcdeffedcba9876543210");
  Key read;
  ASSERT_TRUE(parse_key_text(key_text(key), read));
  EXPECT_EQ(read, key);
  EXPECT_FALSE(parse_key_text("0123", read));
  EXPECT_FALSE(parse_key_text("g123456789abcdeffedcba9876543210", read));
}

// Expected by `printf '%s' HEX | xxd -r -p | base64 | tr '+/' '-_' | tr -d '='`.
TEST(Key, tag_is_unpadded_base64url) {
  char tag[kKeyTagChars];
  write_key_tag({0x0123456789abcdef, 0xfedcba9876543210}, tag);
  EXPECT_EQ(std::string(tag, sizeof tag), "ASNFZ4mrze_-3LqYdlQyEA");
}

}  // namespace
}  // namespace popgate
