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

#include <chrono>
#include <functional>
#include <memory>

struct event;
struct event_base;

namespace popgate {

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

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

/// Calls back once or again and again after a duration. Not started until start_*.
class Timer {
 public:
  Timer(const EventLoop& loop, std::function<void()> callback);
  Timer(event_base* base, std::function<void()> callback);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void start_every(std::chrono::microseconds period);
  void start_once(std::chrono::microseconds delay);
  void stop();

 private:
  void start(std::chrono::microseconds delay, bool again);

  event_base* base_;
  std::function<void()> callback_;
  std::unique_ptr<event, EventDeleter> event_;
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
