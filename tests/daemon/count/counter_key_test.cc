// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_key.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

// Tag expected by `printf '%s' HEX | xxd -r -p | base64 | tr '+/' '-_' | tr -d '='`.
TEST(CounterKey, has_ring_tag_slot_length_and_slot) {
  CounterNames names(0x00abcdef, {0x0123456789abcdef, 0xfedcba9876543210}, std::chrono::seconds(10));
  EXPECT_EQ(names.of(179598127), "pg1:00abcdef:{ASNFZ4mrze_-3LqYdlQyEA}:10000000:179598127");
  EXPECT_EQ(names.of(3), "pg1:00abcdef:{ASNFZ4mrze_-3LqYdlQyEA}:10000000:3");
}

TEST(CounterKey, fits_its_bound_and_memcached_s_at_its_longest) {
  CounterNames names(0xffffffff, {}, microseconds::max());
  EXPECT_LE(names.of(INT64_MIN).size(), kCounterKeyCharsMax);
  EXPECT_LT(kCounterKeyCharsMax, 250u);
}

TEST(CounterKey, own_keys_carry_their_tag) {
  EXPECT_EQ(own_key(0x1234, "shard-0000000000000001", "generation"),
            "pg1:00001234:{shard-0000000000000001}:generation");
}

}  // namespace
}  // namespace popgate
