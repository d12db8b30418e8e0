// SPDX-License-Identifier: Apache-2.0
//
// What a stage may ask of the loop that it runs on: the time, and to be called back later.
//
// The daemon's is EventLoop; a simulated PoP has one whose time is a number, so that the same stages run there.
//
// Threads: the loop's.
// Invariants: 1. Calls come from the loop only, one after the other, never from within start() or stop().
//             2. host_now() never goes back; wall_now() may.
// Limits: a timer holds one call; how many there are is for their owners to bound.
#pragma once

#include <functional>
#include <memory>

#include "libclient/instant.h"

namespace popgate {

/// One call-back of a reactor. None comes after it is gone; it may be destroyed from within one.
class ReactorTimer {
 public:
  virtual ~ReactorTimer() = default;
  /// A start replaces an earlier one.
  virtual void start(microseconds delay, bool again) = 0;
  virtual void stop() = 0;
};

class Reactor {
 public:
  virtual ~Reactor() = default;
  [[nodiscard]] virtual HostInstant host_now() const = 0;
  [[nodiscard]] virtual PopInstant wall_now() const = 0;
  [[nodiscard]] virtual std::unique_ptr<ReactorTimer> make_timer(std::function<void()> callback) = 0;
};

/// Calls back once or again and again after a duration. Not started until start_*.
class Timer {
 public:
  Timer(Reactor& reactor, std::function<void()> callback) : timer_(reactor.make_timer(std::move(callback))) {}

  void start_every(microseconds period) { timer_->start(period, true); }
  void start_once(microseconds delay) { timer_->start(delay, false); }
  void stop() { timer_->stop(); }

 private:
  std::unique_ptr<ReactorTimer> timer_;
};

}  // namespace popgate
