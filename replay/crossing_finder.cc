// SPDX-License-Identifier: Apache-2.0
#include "replay/crossing_finder.h"

#include <algorithm>

#include "replay/live_worker.h"

namespace popgate {

CrossingFinder::CrossingFinder(const LivePlan& plan, const RuleMatcher& matcher, LiveMemory& memory, unsigned workers)
    : plan_(plan), matcher_(matcher), memory_(memory), requests_(workers), next_(workers, 0) {
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    requests_[plan.requests[i].worker].push_back(static_cast<std::uint32_t>(i));
  }
}

void CrossingFinder::look() {
  arrived_.clear();
  for (std::size_t worker = 0; worker < requests_.size(); ++worker) {
    const std::vector<std::uint32_t>& requests = requests_[worker];
    for (std::size_t& next = next_[worker]; next < requests.size(); ++next) {
      const std::int64_t sent = memory_.result(requests[next]).sent_us.load(std::memory_order_acquire);
      if (sent == 0) break;
      arrived_.push_back({sent, requests[next]});
    }
  }
  std::sort(arrived_.begin(), arrived_.end());
  for (const auto& [sent, request] : arrived_) take(request, memory_.result(request));
}

void CrossingFinder::take(std::uint32_t request, const LiveResult& result) {
  ++results_;
  latest_ = std::max(latest_, PopInstant(microseconds(result.sent_us.load(std::memory_order_relaxed))));
  Matches matches;
  matcher_.find(plan_.requests[request].logged, matches);
  for (std::size_t i = 0; i < matches.count; ++i) {
    const Rule* rule = matcher_.rules()->by_number(matches.items[i].rule);
    if (result.blocked != 0 && rule->count == CountMode::kAllowed) continue;
    count(request, matches.items[i], latest_);
  }
}

void CrossingFinder::count(std::uint32_t request, const Match& match, PopInstant time) {
  const Rule* rule = matcher_.rules()->by_number(match.rule);
  State& state = keys_.try_emplace(match.key, ExactCount(rule->window.window, rule->limit)).first->second;
  state.exact.add(time, rule->cost);
  const bool above = state.exact.count(time) > rule->limit;
  // Again above the limit although it was watched: its mitigation has ended, or never came.
  const bool again = time - state.watched_at > std::max<microseconds>(rule->mitigate, kWatchTimeout);
  const bool begins = above && (!state.above || again);
  state.above = above;
  const std::uint32_t index = memory_.control().watches.load(std::memory_order_relaxed);
  if (!begins || index == kWatchesMax) return;
  state.watched_at = time;
  LiveWatch& watch = memory_.watch(index);
  watch.request = request;
  watch.rule = match.rule;
  watch.crossed_us = time.time_since_epoch().count();
  memory_.control().watches.store(index + 1, std::memory_order_release);
}

}  // namespace popgate
