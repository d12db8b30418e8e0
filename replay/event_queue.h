// SPDX-License-Identifier: Apache-2.0
//
// What is to happen when, on the clock of a replay: time jumps from event to event, so that ten years of a quiet log
// take no longer than its requests.
//
// Threads: one thread.
// Invariants: 1. Events run in the order of their times; of equal times, in the order in which they were put in.
//             2. now() never goes back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "libclient/instant.h"

namespace popgate {

class EventQueue {
 public:
  using Action = std::function<void()>;

  /// An event of the past happens now.
  void at(PopInstant time, Action action) { events_.push({std::max(time, now_), order_++, std::move(action)}); }
  /// Runs what is due up to and at `time`, and makes it the present.
  void run_until(PopInstant time) {
    while (!events_.empty() && events_.top().time <= time) run_next();
    now_ = std::max(now_, time);
  }
  /// Runs everything, also what events put in meanwhile.
  void run_all() {
    while (!events_.empty()) run_next();
  }
  [[nodiscard]] PopInstant now() const { return now_; }

 private:
  struct Event {
    PopInstant time;
    std::uint64_t order;
    Action action;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  void run_next() {
    // The queue only gives const access to its top, but the event is gone right after.
    Action action = std::move(const_cast<Event&>(events_.top()).action);
    now_ = events_.top().time;
    events_.pop();
    action();
  }

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  PopInstant now_ = PopInstant::min();
};

}  // namespace popgate
