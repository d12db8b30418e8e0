// SPDX-License-Identifier: Apache-2.0
#include "daemon/event_loop.h"

#include <event2/event.h>
#include <signal.h>

#include "daemon/result.h"

namespace popgate {
namespace {

void call_back(evutil_socket_t /*descriptor*/, short /*what*/, void* callback) {
  (*static_cast<std::function<void()>*>(callback))();
}

}  // namespace

// libevent writes with writev, which cannot ask for no signal: without this, a peer that closes its connection at the
// wrong moment ends the process.
EventLoop::EventLoop() : base_(event_base_new()) {
  POPGATE_ASSERT(base_ != nullptr);
  POPGATE_ASSERT(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

EventLoop::~EventLoop() { event_base_free(base_); }

void EventLoop::run() { event_base_loop(base_, EVLOOP_NO_EXIT_ON_EMPTY); }

void EventLoop::stop() { event_base_loopbreak(base_); }

void EventDeleter::operator()(event* event) const noexcept { event_free(event); }

Timer::Timer(const EventLoop& loop, std::function<void()> callback) : Timer(loop.base(), std::move(callback)) {}

Timer::Timer(event_base* base, std::function<void()> callback) : base_(base), callback_(std::move(callback)) {}

void Timer::start_every(std::chrono::microseconds period) { start(period, true); }

void Timer::start_once(std::chrono::microseconds delay) { start(delay, false); }

void Timer::stop() {
  if (event_) event_del(event_.get());
}

void Timer::start(std::chrono::microseconds delay, bool again) {
  event_.reset(event_new(base_, -1, again ? EV_PERSIST : 0, call_back, &callback_));
  POPGATE_ASSERT(event_ != nullptr);
  const timeval after{.tv_sec = delay.count() / 1'000'000, .tv_usec = delay.count() % 1'000'000};
  POPGATE_ASSERT(event_add(event_.get(), &after) == 0);
}

Signal::Signal(const EventLoop& loop, int number, std::function<void()> callback)
    : callback_(std::move(callback)), event_(evsignal_new(loop.base(), number, call_back, &callback_)) {
  POPGATE_ASSERT(event_ != nullptr && event_add(event_.get(), nullptr) == 0);
}

}  // namespace popgate
