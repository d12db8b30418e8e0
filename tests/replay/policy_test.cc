// SPDX-License-Identifier: Apache-2.0
//
// What the policies promise, on made-up traffic over several nodes, by an exact count that shares nothing with the
// stages: the times of all hits of a key, counted one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/log_client.h"
#include "replay/replayer.h"
#include "replay/traffic.h"
#include "tests/replay/rules_of.h"

namespace popgate {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kLimit = 20;
constexpr seconds kWindow{10};

// Clients that come in bursts of anything up to the limit, so that their exact counts are often just below it and just
// above, and slots are full on one side of the window's edge and empty on the other.
class Bursts final : public RequestSource {
 public:
  explicit Bursts(std::uint64_t seed) : random_(seed) {
    for (unsigned client = 0; client < 60; ++client) add_client("198.51.100." + std::to_string(client));
    std::stable_sort(requests_.begin(), requests_.end(),
                     [](const Planned& a, const Planned& b) { return a.at < b.at; });
  }
  bool next(LoggedRequest& out) override {
    if (at_ == requests_.size()) return false;
    const Planned& planned = requests_[at_++];
    LoggedRequest views;
    views.time = planned.at;
    views.method = "GET";
    views.path = "/";
    views.client_text = planned.client;
    views.client = client_address_of(planned.client);
    out = LoggedRequest::owning(views);
    return true;
  }

 private:
  struct Planned {
    PopInstant at;
    std::string client;
  };
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  void add_client(const std::string& client) {
    for (std::int64_t us = below(10'000'000); us < 120'000'000; us += below(9'000'000)) {
      for (std::int64_t hit = below(kLimit); hit >= 0; --hit) {
        requests_.push_back({PopInstant(seconds(1'000'000'000) + microseconds(us + below(1'500'000))), client});
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<Planned> requests_;
  std::size_t at_ = 0;
};

constexpr milliseconds kFlush{50};
constexpr milliseconds kRoundTrip{20};
constexpr milliseconds kMeshDelay{30};
constexpr milliseconds kLag = kFlush + 2 * kRoundTrip + kMeshDelay;  // what the design grants to counting

/// All of one key: when it made a hit, and when a mitigation that any node decided was in force.
struct KeyHistory {
  std::vector<PopInstant> hits;
  std::vector<std::pair<PopInstant, PopInstant>> mitigated;
  [[nodiscard]] std::uint64_t exact(PopInstant now) const {
    return static_cast<std::uint64_t>(
        std::count_if(hits.begin(), hits.end(), [&](PopInstant t) { return t > now - kWindow && t <= now; }));
  }
  [[nodiscard]] bool is_met_within(PopInstant from, PopInstant to) const {
    return std::any_of(mitigated.begin(), mitigated.end(),
                       [&](const auto& m) { return m.first <= to && m.second > from; });
  }
};

struct Outcome {
  std::size_t decisions = 0;
  std::size_t false_decisions = 0;  // the exact count was within the limit at that instant
  std::size_t over = 0;             // hits that left the exact count above the limit
  std::size_t over_and_missed = 0;  // of these, without a mitigation within kLag
  Report report;
};

Outcome replay(RequestSource& source, Policy policy, std::uint64_t seed) {
  Rule rule = client_rule("r", 0, kLimit, kWindow, seconds(3));
  rule.window = WindowShape::make(kWindow, 6, milliseconds(20));
  rule.policy = policy;
  rule.action = Action::kLog;  // so that every request counts, whatever is decided
  ReplayOptions options;
  identify(rule);
  options.rules = {rule};
  options.nodes = 5;
  options.seed = seed;
  options.spread = Spread::kRandom;
  options.flush_interval = kFlush;
  options.round_trip = kRoundTrip;
  options.mesh_delay = kMeshDelay;
  const RuleMatcher matcher(options.rules, options.secret);
  std::unordered_map<Key, KeyHistory, KeyHash> keys;
  Outcome outcome;
  options.on_decided = [&](const Mitigation& decided, PopInstant now) {
    KeyHistory& key = keys[decided.key];
    ++outcome.decisions;
    if (key.exact(now) <= kLimit) ++outcome.false_decisions;
    key.mitigated.emplace_back(now, pop_time(decided.until));
  };
  Replayer replayer(options);
  LoggedRequest request;
  while (source.next(request)) {
    replayer.request(request);
    Matches matches;
    matcher.find(request, matches);
    keys[matches.items[0].key].hits.push_back(request.time);
  }
  outcome.report = replayer.finish();
  for (const auto& [key, history] : keys) {
    for (const PopInstant at : history.hits) {
      if (history.exact(at) <= kLimit) continue;
      ++outcome.over;
      if (!history.is_met_within(at, at + kLag)) ++outcome.over_and_missed;
    }
  }
  return outcome;
}

Outcome replay_bursts(Policy policy, std::uint64_t seed) {
  Bursts bursts(seed);
  return replay(bursts, policy, seed);
}

TEST(Policy, certain_has_no_false_positive_where_the_estimate_has_some) {
  std::size_t false_by_estimate = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome certain = replay_bursts(Policy::kCertain, seed);
    EXPECT_GT(certain.decisions, 50U);
    EXPECT_EQ(certain.false_decisions, 0U) << "seed " << seed;
    EXPECT_EQ(certain.report.rules[0].false_mitigations, 0U) << "seed " << seed;
    false_by_estimate += replay_bursts(Policy::kEstimate, seed).false_decisions;
  }
  EXPECT_GT(false_by_estimate, 0U) << "traffic on which nothing can go wrong shows nothing";
}

TEST(Policy, cautious_misses_no_hit_over_the_limit_where_the_estimate_misses_some) {
  std::size_t missed_by_estimate = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome cautious = replay_bursts(Policy::kCautious, seed);
    EXPECT_GT(cautious.over, 100U);
    EXPECT_EQ(cautious.over_and_missed, 0U) << "seed " << seed;
    missed_by_estimate += replay_bursts(Policy::kEstimate, seed).over_and_missed;
  }
  EXPECT_GT(missed_by_estimate, 0U) << "traffic on which nothing can be missed shows nothing";
}

TEST(Policy, certain_has_no_false_positive_on_made_up_traffic_and_meets_the_floods) {
  TrafficOptions options;
  options.duration = seconds(60);
  Traffic traffic(options);
  const Outcome certain = replay(traffic, Policy::kCertain, 1);
  EXPECT_GT(certain.decisions, 0U);
  EXPECT_EQ(certain.false_decisions, 0U);
  EXPECT_EQ(certain.report.rules[0].false_mitigations, 0U);
  EXPECT_EQ(certain.report.lo_above_exact, 0U);
}

}  // namespace
}  // namespace popgate
