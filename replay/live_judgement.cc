// SPDX-License-Identifier: Apache-2.0
#include "replay/live_judgement.h"

#include <algorithm>
#include <vector>

#include "replay/live_run.h"
#include "replay/oracle.h"

namespace popgate {
namespace {

constexpr std::chrono::seconds kRetryAfterStep{1};  // popgate_verdict.retry_after_s is rounded up to it

// A request that was sent, or a watched key that was seen blocked by a worker.
struct Event {
  std::int64_t at_us;
  std::uint32_t index;
  std::int32_t seen_by;  // -1: a request
};

std::vector<Event> events_of(const LivePlan& plan, LiveMemory& memory, unsigned workers) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const std::int64_t sent = memory.result(i).sent_us.load(std::memory_order_acquire);
    if (sent != 0) events.push_back({sent, static_cast<std::uint32_t>(i), -1});
  }
  const std::uint32_t watches = memory.control().watches.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < watches; ++i) {
    for (unsigned worker = 0; worker < workers; ++worker) {
      const std::int64_t seen = memory.watch(i).seen[worker].at_us.load(std::memory_order_acquire);
      if (seen > 0) events.push_back({seen, i, static_cast<std::int32_t>(worker)});
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.at_us < b.at_us; });
  return events;
}

class Judge {
 public:
  Judge(const LivePlan& plan, const RuleMatcher& matcher, LiveMemory& memory, unsigned workers)
      : plan_(plan), matcher_(matcher), memory_(memory), oracle_(matcher.rules(), workers, kLiveLag) {}

  void request(const Event& event) {
    const PlannedRequest& planned = plan_.requests[event.index];
    const LiveResult& result = memory_.result(event.index);
    Matches matches;
    matcher_.find(planned.logged, matches);
    ObservedRequest observed;
    observed.time = PopInstant(microseconds(event.at_us));
    observed.node = planned.worker;
    observed.client = client_number(planned.logged.client);
    observed.matches = std::span<const Match>(matches.items).first(matches.count);
    for (std::size_t i = 0; i < matches.count; ++i) {
      if (result.rule == 0) oracle_.seen_passing(matches.items[i].key, observed.time, kRetryAfterStep);
      if (result.rule == 0 || matches.items[i].rule != result.rule) continue;
      observed.enforced |= 1u << i;
      see(planned.worker, matches.items[i], event.at_us, result.retry_after_s);
    }
    oracle_.request(observed);
  }

  void seen(const Event& event) {
    const LiveWatch& watch = memory_.watch(event.index);
    Matches matches;
    matcher_.find(plan_.requests[watch.request].logged, matches);
    const auto worker = static_cast<unsigned>(event.seen_by);
    for (std::size_t i = 0; i < matches.count; ++i) {
      if (matches.items[i].rule != watch.rule) continue;
      see(worker, matches.items[i], event.at_us, watch.seen[worker].retry_after_s.load(std::memory_order_relaxed));
    }
  }

  [[nodiscard]] Report finish() { return oracle_.finish(); }

 private:
  void see(unsigned worker, const Match& match, std::int64_t at_us, std::uint32_t retry_after_s) {
    const PopInstant at(microseconds{at_us});
    oracle_.seen_enforced(worker, {match.key, match.rule, at, at + std::chrono::seconds(retry_after_s)});
  }

  const LivePlan& plan_;
  const RuleMatcher& matcher_;
  LiveMemory& memory_;
  Oracle oracle_;
};

void add_figures(const LivePlan& plan, LiveMemory& memory, unsigned workers, Report& report) {
  LiveReport& live = report.live;
  live.speed_up = plan.speed_up;
  const std::int64_t start = memory.control().start_us.load(std::memory_order_acquire);
  std::int64_t last = start;
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const std::int64_t sent = memory.result(i).sent_us.load(std::memory_order_acquire);
    if (sent == 0) {
      ++live.not_sent;
      continue;
    }
    last = std::max(last, sent);
    const std::int64_t planned = start + plan.requests[i].offset.count();
    live.send_delay_s.add(static_cast<double>(std::max<std::int64_t>(0, sent - planned)) / 1e6);
  }
  live.seconds = static_cast<double>(last - start) / 1e6;
  for (unsigned i = 0; i < workers; ++i) {
    const LiveWorkerFigures& figures = memory.control().workers[i];
    live.checks_detached += figures.checks_detached;
    live.hits_recorded += figures.hits_recorded;
    live.hits_dropped += figures.hits_dropped;
  }
}

}  // namespace

Report judge_live_run(const LivePlan& plan, const RuleMatcher& matcher, LiveMemory& memory, unsigned workers) {
  Judge judge(plan, matcher, memory, workers);
  for (const Event& event : events_of(plan, memory, workers)) {
    if (event.seen_by < 0) {
      judge.request(event);
    } else {
      judge.seen(event);
    }
  }
  Report report = judge.finish();
  report.mode = "live";
  add_figures(plan, memory, workers, report);
  return report;
}

}  // namespace popgate
