// SPDX-License-Identifier: Apache-2.0
#include "daemon/backoff.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

TEST(Backoff, waits_double_up_to_the_longest_and_each_is_drawn_from_its_upper_half) {
  std::mt19937_64 random(1);
  Backoff backoff(milliseconds(100), milliseconds(1000));
  for (const int whole : {100, 200, 400, 800, 1000, 1000}) {
    const microseconds wait = backoff.next(random);
    EXPECT_GE(wait, milliseconds(whole) / 2);
    EXPECT_LE(wait, milliseconds(whole));
  }
  backoff.reset();
  EXPECT_LE(backoff.next(random), milliseconds(100));
}

TEST(Backoff, two_nodes_that_lost_a_peer_together_do_not_come_back_together) {
  std::mt19937_64 random_a(1);
  std::mt19937_64 random_b(2);
  Backoff a(milliseconds(100), milliseconds(1000));
  Backoff b(milliseconds(100), milliseconds(1000));
  EXPECT_NE(a.next(random_a), b.next(random_b));
}

}  // namespace
}  // namespace popgate
