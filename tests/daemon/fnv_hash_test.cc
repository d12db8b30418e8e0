// SPDX-License-Identifier: Apache-2.0
#include "daemon/fnv_hash.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

constexpr std::uint64_t hash_of(std::string_view bytes) {
  FnvHash hash;
  hash.add(bytes);
  return hash.value();
}

// Of the algorithm's published test vectors.
TEST(FnvHash, is_what_its_authors_say) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8U);
}

TEST(FnvHash, does_not_depend_on_how_the_bytes_were_divided) {
  FnvHash hash;
  hash.add("foo");
  hash.add("");
  hash.add(static_cast<unsigned char>('b'));
  hash.add("ar");
  EXPECT_EQ(hash.value(), hash_of("foobar"));
}

}  // namespace
}  // namespace popgate
