// SPDX-License-Identifier: Apache-2.0
#include "replay/ideal_limiter.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cmath>

#include "tests/replay/rules_of.h"

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(double s) { return PopInstant(microseconds(std::llround(s * 1e6))); }

class IdealLimiterTest : public testing::Test {
 protected:
  bool blocks(IdealLimiter& limiter, double time, std::uint64_t client = 1) {
    const Match match{1, Key{client, client}};
    return limiter.blocks(at(time), {&match, 1});
  }
};

TEST_F(IdealLimiterTest, limit_hits_pass_and_the_next_is_blocked_for_the_time_of_the_rule) {
  IdealLimiter limiter(rules_of({client_rule("r", 1, 3, seconds(10), seconds(60))}));
  EXPECT_FALSE(blocks(limiter, 0));
  EXPECT_FALSE(blocks(limiter, 1));
  EXPECT_FALSE(blocks(limiter, 2));
  EXPECT_TRUE(blocks(limiter, 3));
  EXPECT_TRUE(blocks(limiter, 62.9));
  EXPECT_FALSE(blocks(limiter, 63));
  EXPECT_FALSE(blocks(limiter, 3, 2)) << "another client";
}

TEST_F(IdealLimiterTest, block_lasts_at_least_until_a_request_would_be_admitted) {
  IdealLimiter limiter(rules_of({client_rule("r", 1, 3, seconds(10), milliseconds(100))}));
  for (const double t : {0.0, 1.0, 2.0}) EXPECT_FALSE(blocks(limiter, t));
  EXPECT_TRUE(blocks(limiter, 3));
  EXPECT_TRUE(blocks(limiter, 9.95)) << "and trying does not lengthen it";
  EXPECT_FALSE(blocks(limiter, 10)) << "the hit of 0 s has left";
}

TEST_F(IdealLimiterTest, throttle_blocks_only_what_would_go_over) {
  IdealLimiter limiter(rules_of({client_rule("r", 1, 2, seconds(10), seconds(0))}));
  EXPECT_FALSE(blocks(limiter, 0));
  EXPECT_FALSE(blocks(limiter, 5));
  EXPECT_TRUE(blocks(limiter, 6));
  EXPECT_FALSE(blocks(limiter, 10));
  EXPECT_TRUE(blocks(limiter, 11));
  EXPECT_FALSE(blocks(limiter, 15));
}

TEST_F(IdealLimiterTest, rule_that_counts_all_keeps_a_client_out_that_goes_on) {
  Rule rule = client_rule("r", 1, 2, seconds(10), seconds(1));
  rule.count = CountMode::kAll;
  IdealLimiter limiter(rules_of({rule}));
  EXPECT_FALSE(blocks(limiter, 0));
  EXPECT_FALSE(blocks(limiter, 1));
  for (double t = 2; t < 100; t += 1) EXPECT_TRUE(blocks(limiter, t)) << t;
  EXPECT_FALSE(blocks(limiter, 108)) << "the hits of 98 s and before have left";
}

TEST_F(IdealLimiterTest, log_rule_blocks_nothing) {
  Rule rule = client_rule("r", 1, 1, seconds(10), seconds(10));
  rule.action = Action::kLog;
  IdealLimiter limiter(rules_of({rule}));
  for (double t = 0; t < 5; t += 1) EXPECT_FALSE(blocks(limiter, t));
}

RC_GTEST_PROP(IdealLimiterProperty, no_window_ever_holds_more_than_the_limit, ()) {
  const auto limit = static_cast<std::uint64_t>(*rc::gen::inRange(1, 6));
  const microseconds window(*rc::gen::inRange(10, 500));
  Rule rule = client_rule("r", 1, limit, window, milliseconds(0));
  IdealLimiter limiter(rules_of({rule}));
  std::vector<PopInstant> passed;
  PopInstant now = at(0);
  for (const int gap : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100))) {
    now += microseconds(gap);
    const Match match{1, Key{1, 1}};
    const auto in_window = static_cast<std::uint64_t>(
        std::count_if(passed.begin(), passed.end(), [&](PopInstant t) { return t > now - window; }));
    const bool blocked = limiter.blocks(now, {&match, 1});
    RC_ASSERT(blocked == (in_window >= limit));
    if (!blocked) passed.push_back(now);
  }
}

}  // namespace
}  // namespace popgate
