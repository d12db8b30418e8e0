// SPDX-License-Identifier: Apache-2.0
//
// The parts of a live replay without daemons: the plan, the finding of crossings, the judgement of what workers wrote.
#include <gtest/gtest.h>

#include <cmath>

#include "replay/crossing_finder.h"
#include "replay/live_judgement.h"
#include "replay/live_run.h"
#include "replay/live_worker.h"
#include "replay/log_client.h"
#include "tests/replay/rules_of.h"

namespace popgate {
namespace {

using std::chrono::seconds;

PopInstant at(double s) { return PopInstant(seconds(1'000'000'000)) + microseconds(std::llround(s * 1e6)); }

// Requests of one client at given times.
class Times final : public RequestSource {
 public:
  explicit Times(std::vector<double> times) : times_(std::move(times)) {}
  [[nodiscard]] bool next(LoggedRequest& out) override {
    if (next_ == times_.size()) return false;
    LoggedRequest views;
    views.time = at(times_[next_++]);
    views.method = "GET";
    views.path = "/";
    views.client_text = "192.0.2.1";
    views.client = client_address_of(views.client_text);
    out = LoggedRequest::owning(views);
    return true;
  }

 private:
  std::vector<double> times_;
  std::size_t next_ = 0;
};

LivePlan plan_of(std::vector<double> times, const PlanOptions& options) {
  Times source(std::move(times));
  return plan_requests(source, options);
}

std::vector<std::int64_t> offsets_ms(const LivePlan& plan) {
  std::vector<std::int64_t> offsets;
  for (const PlannedRequest& request : plan.requests) offsets.push_back(request.offset.count() / 1000);
  return offsets;
}

TEST(LivePlan, speed_up_divides_the_time_between_requests) {
  PlanOptions options;
  options.speed_up = 10;
  const LivePlan plan = plan_of({0, 1, 5}, options);
  EXPECT_EQ(offsets_ms(plan), (std::vector<std::int64_t>{0, 100, 500}));
  EXPECT_EQ(plan.length, milliseconds(500));
}

TEST(LivePlan, duration_chooses_the_speed_up) {
  PlanOptions options;
  options.duration = seconds(2);
  const LivePlan plan = plan_of({0, 5, 20}, options);
  EXPECT_EQ(offsets_ms(plan), (std::vector<std::int64_t>{0, 500, 2000}));
  EXPECT_DOUBLE_EQ(plan.speed_up, 10);
}

TEST(LivePlan, idle_gaps_are_cut_before_anything_else) {
  PlanOptions options;
  options.max_gap = seconds(10);
  EXPECT_EQ(offsets_ms(plan_of({0, 1e8, 1e8 + 4}, options)), (std::vector<std::int64_t>{0, 10'000, 14'000}));
}

TEST(LivePlan, requests_of_one_instant_need_no_time) {
  PlanOptions options;
  options.duration = seconds(1);
  EXPECT_EQ(offsets_ms(plan_of({5, 5, 5}, options)), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(LivePlan, workers_take_turns) {
  PlanOptions options;
  options.workers = 3;
  const LivePlan plan = plan_of({0, 1, 2, 3}, options);
  EXPECT_EQ(plan.requests[0].worker, 0u);
  EXPECT_EQ(plan.requests[1].worker, 1u);
  EXPECT_EQ(plan.requests[2].worker, 2u);
  EXPECT_EQ(plan.requests[3].worker, 0u);
}

// Two workers, limit 3 in 60 s, the requests of one client a second apart; what workers would write is written here.
class LiveRunParts : public testing::Test {
 protected:
  LiveRunParts() : matcher_({identified()}, HashSecret{}), memory_(*LiveMemory::make(16)) {
    PlanOptions options;
    options.workers = 2;
    plan_ = plan_of({0, 1, 2, 3, 4, 5, 6, 7}, options);
    memory_->control().start_us.store(at(0).time_since_epoch().count());
  }
  static Rule identified() {
    Rule rule = client_rule("r", 0, 3, seconds(60), seconds(300));
    identify(rule);
    return rule;
  }
  void passes(std::size_t request, double time) {
    memory_->result(request).sent_us.store(at(time).time_since_epoch().count());
  }
  void is_blocked(std::size_t request, double time) {
    LiveResult& result = memory_->result(request);
    result.blocked = 1;
    result.rule = matcher_.rules()->by_name("r")->number;
    result.retry_after_s = 300;
    passes(request, time);
  }
  void is_seen(unsigned worker, double time) {
    memory_->watch(0).seen[worker].retry_after_s.store(300);
    memory_->watch(0).seen[worker].at_us.store(at(time).time_since_epoch().count());
  }

  RuleMatcher matcher_;
  std::unique_ptr<LiveMemory> memory_;
  LivePlan plan_;
};

TEST_F(LiveRunParts, crossing_is_found_once_and_handed_to_the_workers) {
  CrossingFinder finder(plan_, matcher_, *memory_, 2);
  for (std::size_t i = 0; i < 3; ++i) passes(i, static_cast<double>(i));
  finder.look();
  EXPECT_EQ(finder.results(), 3u);
  EXPECT_EQ(memory_->control().watches.load(), 0u);
  passes(3, 3);
  passes(4, 4);
  finder.look();
  ASSERT_EQ(memory_->control().watches.load(), 1u);
  EXPECT_EQ(memory_->watch(0).request, 3u);
  EXPECT_EQ(memory_->watch(0).crossed_us, at(3).time_since_epoch().count());
}

TEST_F(LiveRunParts, blocked_requests_do_not_make_a_crossing) {
  CrossingFinder finder(plan_, matcher_, *memory_, 2);
  for (std::size_t i = 0; i < 3; ++i) passes(i, static_cast<double>(i));
  for (std::size_t i = 3; i < 8; ++i) is_blocked(i, static_cast<double>(i));
  finder.look();
  EXPECT_EQ(memory_->control().watches.load(), 0u);
}

TEST_F(LiveRunParts, time_to_enforced_is_that_of_the_last_worker_to_see_the_block) {
  CrossingFinder finder(plan_, matcher_, *memory_, 2);
  for (std::size_t i = 0; i < 4; ++i) passes(i, static_cast<double>(i));
  finder.look();
  is_seen(1, 3.03);
  is_seen(0, 3.05);
  for (std::size_t i = 4; i < 7; ++i) is_blocked(i, static_cast<double>(i));
  const Report report = judge_live_run(plan_, matcher_, *memory_, 2);
  EXPECT_EQ(report.mode, "live");
  EXPECT_EQ(report.requests, 7u);
  EXPECT_EQ(report.live.not_sent, 1u);
  EXPECT_EQ(report.blocked, 3u);
  EXPECT_EQ(report.wrongly_blocked, 0u);
  EXPECT_EQ(report.wrongly_passed, 1u);
  EXPECT_EQ(report.rules[0].mitigations, 1u);
  EXPECT_EQ(report.rules[0].false_mitigations, 0u);
  EXPECT_NEAR(report.time_to_decision_s.maximum(), 0.03, 1e-9);
  EXPECT_NEAR(report.time_to_enforced_s.maximum(), 0.05, 1e-9);
  EXPECT_EQ(report.clients_blocked_by_node, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_NEAR(report.live.seconds, 6, 1e-9);
}

TEST_F(LiveRunParts, results_are_judged_in_the_order_of_their_times_and_not_of_the_plan) {
  passes(0, 0);
  passes(1, 1);
  passes(2, 4);  // late: by then the fourth has come
  passes(3, 3);
  const Report report = judge_live_run(plan_, matcher_, *memory_, 2);
  EXPECT_EQ(report.rules[0].crossings, 1u);
  EXPECT_EQ(report.rules[0].overshoot.maximum(), 1);
  EXPECT_NEAR(report.live.send_delay_s.maximum(), 2, 1e-9);
}

TEST_F(LiveRunParts, block_without_a_crossing_is_a_false_mitigation) {
  passes(0, 0);
  is_blocked(1, 1);
  const Report report = judge_live_run(plan_, matcher_, *memory_, 2);
  EXPECT_EQ(report.rules[0].mitigations, 1u);
  EXPECT_EQ(report.rules[0].false_mitigations, 1u);
  EXPECT_EQ(report.wrongly_blocked, 1u);
}

TEST_F(LiveRunParts, client_that_another_rule_blocks_gives_no_measurement) {
  CrossingFinder finder(plan_, matcher_, *memory_, 2);
  for (std::size_t i = 0; i < 4; ++i) passes(i, static_cast<double>(i));
  finder.look();
  memory_->watch(0).seen[0].at_us.store(LiveWatch::kOtherRule);
  const Report report = judge_live_run(plan_, matcher_, *memory_, 2);
  EXPECT_EQ(report.time_to_enforced_s.count(), 0u);
  EXPECT_EQ(report.rules[0].mitigations, 0u);
}

TEST(LiveRun, no_daemon_is_an_error_that_names_the_socket_and_leaves_no_process) {
  Rule rule = client_rule("r", 0, 3, seconds(60), seconds(300));
  identify(rule);
  const RuleMatcher matcher({rule}, HashSecret{});
  const LivePlan plan = plan_of({0}, {});
  LiveOptions options;
  options.sockets = {"/nonexistent/workers.sock"};
  options.attach_timeout = milliseconds(200);
  const Result<Report> report = run_live(plan, matcher, options);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().find("/nonexistent/workers.sock"), std::string::npos) << report.error();
}

}  // namespace
}  // namespace popgate
