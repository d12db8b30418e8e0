// SPDX-License-Identifier: Apache-2.0
//
// The daemon's one event loop, and the timers and signals on it: libevent with owners.
//
// Everything in the daemon runs on this loop and nothing on it blocks; so no stage needs a lock.
//
// Threads: one; the thread that calls run().
// Invariants: 1. A callback is never called after its Timer or Signal is gone.
//             2. From the first loop on, the process ignores SIGPIPE.
#pragma once

#include <functional>
#include <memory>

#include "daemon/reactor.h"

struct event;
struct event_base;

namespace popgate {

class EventLoop final : public Reactor {
 public:
  EventLoop();
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  [[nodiscard]] HostInstant host_now() const override { return HostClock::now(); }
  [[nodiscard]] PopInstant wall_now() const override { return PopClock::now(); }
  [[nodiscard]] std::unique_ptr<ReactorTimer> make_timer(std::function<void()> callback) override;

  [[nodiscard]] event_base* base() const noexcept { return base_; }
  /// Returns when stop() was called.
  void run();
  /// Ends run() after the callbacks of this turn.
  void stop();

 private:
  event_base* base_;
};

struct EventDeleter {
  void operator()(event* event) const noexcept;
};

/// Calls back on the loop when the process gets the signal.
class Signal {
 public:
  Signal(const EventLoop& loop, int number, std::function<void()> callback);
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

 private:
  std::function<void()> callback_;
  std::unique_ptr<event, EventDeleter> event_;
};

}  // namespace popgate
