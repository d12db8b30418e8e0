// SPDX-License-Identifier: Apache-2.0
//
// The wall clock of a node, its daemon's and its worker's, stepped by an hour while the PoP runs: no mitigation ends
// or lasts longer for it, nothing is counted into slots that the others do not look at, and no hit is unaccounted for.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/process/accounts.h"
#include "tests/process/pop.h"
#include "tests/process/stepped_clock.h"
#include "tests/process/test_scale.h"
#include "tests/process/worker_process.h"

namespace popgate::process {
namespace {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";

class PopClockStepped : public ::testing::TestWithParam<hours> {
 protected:
  void SetUp() override {
    if (kAddressSanitizer) GTEST_SKIP() << "libfaketime and AddressSanitizer's start-up wait for each other";
    if (SteppedClock::library().empty()) GTEST_SKIP() << "libfaketime is not installed (Debian: faketime)";
  }
  void TearDown() override {
    if (!there_) return;
    const pid_t with_that_clock[] = {stepped().process().pid(), there_->pid()};
    there_.reset();
    pop_.reset();
    for (const pid_t pid : with_that_clock) SteppedClock::remove_leftovers(pid);
  }
  /// Only the last node has the clock that is stepped.
  void start(int nodes) {
    pop_ = std::make_unique<Pop>(PopOptions{.nodes = nodes, .shards = 1, .rules = kRules, .start = false});
    clock_.emplace(pop_->folder());
    stepped().surroundings().environment = clock_->environment();
    pop_->start();
    there_.emplace(stepped(), stepped().surroundings());
    ASSERT_TRUE(there_->attach());
  }
  [[nodiscard]] Node& stepped() { return pop_->node(pop_->nodes() - 1); }
  [[nodiscard]] bool says_its_clock_is_off(std::size_t node) {
    return pop_->node(node).get("/status")["not_ready"].dump().find("clock is off") != std::string::npos;
  }
  [[nodiscard]] json entries(std::size_t node) { return pop_->node(node).get("/mitigations")["mitigations"]; }
  [[nodiscard]] bool settled() {
    return eventually([&] { return total_account(*pop_, "all").pending == 0; });
  }

  std::unique_ptr<Pop> pop_;
  std::optional<SteppedClock> clock_;
  std::optional<WorkerProcess> there_;  // on the node whose clock is stepped
};

TEST_P(PopClockStepped, on_one_of_three_nodes_it_counts_alone_until_the_clock_is_right_and_blocks_end_on_time) {
  constexpr auto kNoticed = milliseconds(1000);
  ASSERT_NO_FATAL_FAILURE(start(3));
  Worker here(pop_->node(0));
  ASSERT_TRUE(here.attach());
  (void)pop_->node(0).post("/block", {{"rule", "all"}, {"values", {"203.0.113.1"}}, {"for_ms", 3'600'000}});
  for (int i = 0; i < 21; ++i) here.request("203.0.113.2");
  const auto both_blocked = [&] { return there_->is_blocked("203.0.113.1") && there_->is_blocked("203.0.113.2"); };
  ASSERT_TRUE(eventually(both_blocked));
  ASSERT_TRUE(settled());
  const std::uint64_t counted = pop_->counters_sum();
  const json before = entries(2);

  clock_->step_to(GetParam());
  EXPECT_TRUE(eventually(
      [&] {
        EXPECT_TRUE(both_blocked());
        return says_its_clock_is_off(2);
      },
      scaled(kNoticed)));
  EXPECT_TRUE(eventually([&] {
    const json skew = pop_->node(0).get("/peers")["peers"][1]["skew_ms"];
    return skew.is_number() &&
           std::abs(skew.get<double>() - static_cast<double>(milliseconds(GetParam()).count())) < 20;
  })) << "the others see by how much";
  EXPECT_FALSE(says_its_clock_is_off(0) || says_its_clock_is_off(1)) << "two of three clocks agree";

  // It judges its own hits, and what it decides holds everywhere for an hour and no longer.
  (void)there_->send("203.0.113.3", 20);
  EXPECT_FALSE(there_->is_blocked("203.0.113.3"));
  (void)there_->send("203.0.113.3", 1);
  EXPECT_TRUE(eventually([&] { return there_->is_blocked("203.0.113.3") && here.is_blocked("203.0.113.3"); }));
  EXPECT_EQ(pop_->counters_sum(), counted) << "into slots at which nobody else looks";
  for (const std::size_t node : {0U, 2U}) {
    const json now = entries(node);
    ASSERT_EQ(now.size(), before.size() + 1);
    for (const json& entry : now) {
      const auto left = milliseconds(entry["remaining_ms"].get<std::int64_t>());
      EXPECT_LE(left, hours(1) + hours(1)) << entry.dump();  // automatic ones may wait for the estimate to fall
      EXPECT_GE(left, hours(1) - seconds(30)) << entry.dump();
    }
  }

  clock_->step_to({});
  EXPECT_TRUE(eventually([&] { return !says_its_clock_is_off(2) && stepped().ready(); }, seconds(20)));
  EXPECT_TRUE(both_blocked());
  EXPECT_EQ(there_->send("203.0.113.4", 5), 0U);
  ASSERT_TRUE(settled());
  const Account account = total_account(*pop_, "all");
  EXPECT_EQ(account.recorded, 21U + there_->recorded());
  EXPECT_TRUE(account.adds_up());
  EXPECT_EQ(pop_->counters_sum(), account.delivered);
  EXPECT_GE(account.delivered, counted + 5) << "it counts again";
  if (GetParam() > hours(0)) {
    EXPECT_EQ(account.delivered, counted + 5) << "what was made an hour ahead would count again in an hour";
  }
}

// What waits in the ring is in the daemon's first flush, before any peer has answered.
TEST_P(PopClockStepped, before_a_daemon_starts_it_counts_nothing_until_the_clock_is_right) {
  ASSERT_NO_FATAL_FAILURE(start(3));
  ASSERT_EQ(stepped().stop(), 0);
  clock_->step_to(GetParam());
  (void)there_->send("203.0.113.1", 7);
  stepped().start();
  ASSERT_TRUE(eventually([&] { return says_its_clock_is_off(2); }));
  ASSERT_TRUE(eventually([&] { return stepped().metric("popgate_count_hits_unsent") == 7; })) << "judged here alone";
  EXPECT_EQ(pop_->counters_sum(), 0U);
  clock_->step_to({});
  EXPECT_TRUE(eventually([&] { return stepped().ready(); }, seconds(20)));
  (void)there_->send("203.0.113.1", 2);
  EXPECT_TRUE(eventually([&] { return pop_->counters_sum() == 2; }));
  ASSERT_TRUE(settled());
  EXPECT_TRUE(total_account(*pop_, "all").adds_up());
}

// Twenty hits are within the limit, however the clock of their only node moves between them.
TEST_P(PopClockStepped, on_a_pop_of_one_node_blocks_nobody_who_kept_to_the_limit) {
  ASSERT_NO_FATAL_FAILURE(start(1));
  (void)stepped().post("/block", {{"rule", "all"}, {"values", {"203.0.113.1"}}, {"for_ms", 3'600'000}});
  EXPECT_EQ(there_->send("203.0.113.2", 10), 0U);
  clock_->step_to(GetParam());
  EXPECT_EQ(there_->send("203.0.113.2", 5), 0U);
  EXPECT_TRUE(there_->is_blocked("203.0.113.1"));
  ASSERT_TRUE(settled());
  clock_->step_to({});
  EXPECT_EQ(there_->send("203.0.113.2", 5), 0U);
  ASSERT_TRUE(settled());
  EXPECT_FALSE(there_->is_blocked("203.0.113.2"));
  EXPECT_TRUE(there_->is_blocked("203.0.113.1"));
  const Account account = total_account(*pop_, "all");
  EXPECT_EQ(account.recorded, 20U);
  EXPECT_TRUE(account.adds_up());
  EXPECT_EQ(pop_->counters_sum(), account.delivered);
  EXPECT_EQ(account.lost + account.uncertain, 0U);
}

INSTANTIATE_TEST_SUITE_P(, PopClockStepped, ::testing::Values(hours(1), hours(-1)),
                         [](const auto& each) { return each.param > hours(0) ? "an_hour_ahead" : "an_hour_back"; });

}  // namespace
}  // namespace popgate::process
