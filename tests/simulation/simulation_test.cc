// SPDX-License-Identifier: Apache-2.0
// Bounded numbers of seeds for scripts/test; `simulate --seeds A..B` runs any number.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "tests/simulation/simulation.h"

namespace popgate::simulation {
namespace {

// A sanitizer's build takes some twenty times as long for each.
#ifdef NDEBUG
constexpr std::uint64_t kSeedsEach = 60;
#else
constexpr std::uint64_t kSeedsEach = 2;
#endif

std::string told(const Plan& plan, const Outcome& outcome) {
  std::string text;
  for (const std::string& line : outcome.last_lines) text += line + "\n";
  return text + outcome.fault + "\nto see it again: " + command_of(plan);
}

class Seeds : public testing::TestWithParam<std::uint64_t> {
 protected:
  Seeds() { spdlog::set_level(spdlog::level::off); }
};

TEST_P(Seeds, keep_every_promise) {
  Outcome met;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + kSeedsEach; ++seed) {
    const Plan plan{.seed = seed};
    const Outcome outcome = simulate(plan);
    ASSERT_EQ(outcome.fault, "") << told(plan, outcome);
    met.faults += outcome.faults;
    met.denied += outcome.denied;
    met.decisions += outcome.decisions;
    met.lower_bounds += outcome.lower_bounds;
  }
  // A run in which nothing happens keeps every promise.
  EXPECT_GT(met.faults, 0U);
  EXPECT_GT(met.denied, 0U);
  EXPECT_GT(met.decisions, 0U);
  EXPECT_GT(met.lower_bounds, 0U);
}

// Apart, so that they run beside each other.
INSTANTIATE_TEST_SUITE_P(From, Seeds, testing::Values(1, 1001, 2001, 3001));

struct Regression {
  std::uint64_t seed;
  const char* what_broke;
};

// Seeds that once failed, and what was wrong then.
constexpr Regression kRegressions[] = {
    {.seed = 14, .what_broke = "the limit check asked a node that had stopped"},
};

TEST(Simulation, seeds_that_once_failed_do_not_any_more) {
  spdlog::set_level(spdlog::level::off);
  for (const Regression& regression : kRegressions) {
    const Plan plan{.seed = regression.seed};
    const Outcome outcome = simulate(plan);
    EXPECT_EQ(outcome.fault, "") << "once: " << regression.what_broke << "\n" << told(plan, outcome);
  }
}

TEST(Simulation, the_same_seed_gives_the_same_trace_and_another_seed_another) {
  spdlog::set_level(spdlog::level::off);
  const Plan plan{.seed = 5, .length = std::chrono::seconds(15)};
  const Outcome first = simulate(plan);
  const Outcome second = simulate(plan);
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.events, second.events);
  EXPECT_NE(simulate({.seed = 6, .length = std::chrono::seconds(15)}).trace_hash, first.trace_hash);
}

struct PipeCloser {
  void operator()(FILE* pipe) const { pclose(pipe); }
};

// Another process has other addresses, another start time and another random_device: none of it may matter.
TEST(Simulation, the_same_seed_gives_the_same_trace_in_another_process) {
  const Plan plan{.seed = 9, .length = std::chrono::seconds(15)};
  const std::unique_ptr<FILE, PipeCloser> pipe(popen(SIMULATE " --seed 9 --seconds 15", "r"));
  ASSERT_NE(pipe, nullptr);
  std::string said;
  char piece[4096];
  while (std::fgets(piece, sizeof piece, pipe.get()) != nullptr) said += piece;
  char hash[32];
  (void)std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(simulate(plan).trace_hash));
  EXPECT_NE(said.find(hash), std::string::npos) << said;
}

}  // namespace
}  // namespace popgate::simulation
