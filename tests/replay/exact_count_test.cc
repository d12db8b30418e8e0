// SPDX-License-Identifier: Apache-2.0
#include "replay/exact_count.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <cmath>

#include <algorithm>

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(double s) { return PopInstant(microseconds(std::llround(s * 1e6))); }

TEST(ExactCount, window_is_half_open) {
  ExactCount exact(seconds(60), 10);
  exact.add(at(100), 1);
  EXPECT_EQ(exact.count(at(100)), 1u);
  EXPECT_EQ(exact.count(at(159.999999)), 1u);
  EXPECT_EQ(exact.count(at(160)), 0u);
}

TEST(ExactCount, a_client_that_polls_once_a_window_never_counts_twice) {
  ExactCount exact(seconds(60), 1);
  for (int i = 0; i < 100; ++i) {
    exact.add(at(60.0 * i), 1);
    EXPECT_EQ(exact.count(at(60.0 * i)), 1u);
  }
}

TEST(ExactCount, remembers_until_when_it_was_above_the_limit) {
  ExactCount exact(seconds(10), 2);
  for (const double t : {0.0, 1.0, 2.0}) exact.add(at(t), 1);
  EXPECT_TRUE(exact.exceeded_since(at(2), at(2)));
  // The hit of 0 s leaves at 10 s: above the limit in [2 s, 10 s).
  EXPECT_TRUE(exact.exceeded_since(at(9.9), at(10.5)));
  EXPECT_FALSE(exact.exceeded_since(at(10), at(10.5)));
}

TEST(ExactCount, says_when_it_falls_to_a_level) {
  ExactCount exact(seconds(10), 2);
  for (const double t : {0.0, 1.0, 2.0}) exact.add(at(t), 1);
  EXPECT_EQ(exact.falls_to(3, at(2)), at(2));
  EXPECT_EQ(exact.falls_to(2, at(2)), at(10));
  EXPECT_EQ(exact.falls_to(0, at(2)), at(12));
}

struct Hits {
  std::vector<PopInstant> times;
  std::vector<std::uint64_t> costs;
  [[nodiscard]] std::uint64_t in_window(PopInstant now, microseconds window) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] > now - window && times[i] <= now) sum += costs[i];
    }
    return sum;
  }
};

Hits any_hits() {
  Hits hits;
  PopInstant now = at(0);
  for (const int gap : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 400))) {
    now += microseconds(gap);
    hits.times.push_back(now);
    hits.costs.push_back(static_cast<std::uint64_t>(*rc::gen::inRange(1, 4)));
  }
  return hits;
}

RC_GTEST_PROP(ExactCount, counts_like_a_scan_over_all_hits, ()) {
  const Hits hits = any_hits();
  const microseconds window(*rc::gen::inRange(1, 1000));
  ExactCount exact(window, 5);
  for (std::size_t i = 0; i < hits.times.size(); ++i) {
    exact.add(hits.times[i], hits.costs[i]);
    Hits so_far = hits;
    so_far.times.resize(i + 1);
    RC_ASSERT(exact.count(hits.times[i]) == so_far.in_window(hits.times[i], window));
  }
  if (hits.times.empty()) return;
  const PopInstant later = hits.times.back() + microseconds(*rc::gen::inRange(0, 2000));
  RC_ASSERT(exact.count(later) == hits.in_window(later, window));
}

RC_GTEST_PROP(ExactCount, was_above_the_limit_exactly_when_a_scan_over_all_instants_says_so, ()) {
  const Hits hits = any_hits();
  RC_PRE(!hits.times.empty());
  const microseconds window(*rc::gen::inRange(1, 1000));
  const auto limit = static_cast<std::uint64_t>(*rc::gen::inRange(0, 8));
  ExactCount exact(window, limit);
  for (std::size_t i = 0; i < hits.times.size(); ++i) exact.add(hits.times[i], hits.costs[i]);
  // From the last hit on: what is asked for reaches back no further than the state that was there when it was added.
  const PopInstant since = hits.times.back() + microseconds(*rc::gen::inRange(0, 1000));
  const PopInstant now = since + microseconds(*rc::gen::inRange(0, 1000));
  bool above = false;
  for (PopInstant t = since; t <= now; t += microseconds(1)) above = above || hits.in_window(t, window) > limit;
  RC_ASSERT(exact.exceeded_since(since, now) == above);
}

RC_GTEST_PROP(ExactCount, falls_when_a_scan_over_all_instants_says_so, ()) {
  const Hits hits = any_hits();
  RC_PRE(!hits.times.empty());
  const microseconds window(*rc::gen::inRange(1, 1000));
  const auto level = static_cast<std::uint64_t>(*rc::gen::inRange(0, 8));
  ExactCount exact(window, 5);
  for (std::size_t i = 0; i < hits.times.size(); ++i) exact.add(hits.times[i], hits.costs[i]);
  PopInstant t = hits.times.back();
  while (hits.in_window(t, window) > level) t += microseconds(1);
  RC_ASSERT(exact.falls_to(level, hits.times.back()) == t);
}

}  // namespace
}  // namespace popgate
