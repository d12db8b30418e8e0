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

class LoopTimer final : public ReactorTimer {
 public:
  LoopTimer(event_base* base, std::function<void()> callback) : base_(base), callback_(std::move(callback)) {}

  void start(microseconds delay, bool again) override {
    event_.reset(event_new(base_, -1, again ? EV_PERSIST : 0, call_back, &callback_));
    POPGATE_ASSERT(event_ != nullptr);
    const timeval after{.tv_sec = delay.count() / 1'000'000, .tv_usec = delay.count() % 1'000'000};
    POPGATE_ASSERT(event_add(event_.get(), &after) == 0);
  }
  void stop() override {
    if (event_) event_del(event_.get());
  }

 private:
  event_base* base_;
  std::function<void()> callback_;
  std::unique_ptr<event, EventDeleter> event_;
};

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

std::unique_ptr<ReactorTimer> EventLoop::make_timer(std::function<void()> callback) {
  return std::make_unique<LoopTimer>(base_, std::move(callback));
}

Signal::Signal(const EventLoop& loop, int number, std::function<void()> callback)
    : callback_(std::move(callback)), event_(evsignal_new(loop.base(), number, call_back, &callback_)) {
  POPGATE_ASSERT(event_ != nullptr && event_add(event_.get(), nullptr) == 0);
}

}  // namespace popgate
