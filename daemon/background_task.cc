// SPDX-License-Identifier: Apache-2.0
#include "daemon/background_task.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "daemon/result.h"

namespace popgate {
namespace {

// Signals are the loop's: the thread is born with all of them blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

BackgroundTask::BackgroundTask(const EventLoop& loop) : finished_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  POPGATE_ASSERT(finished_.is_open());
  const auto on_readable = [](evutil_socket_t, short, void* self) { static_cast<BackgroundTask*>(self)->finish(); };
  readable_.reset(event_new(loop.base(), finished_.get(), EV_READ | EV_PERSIST, on_readable, this));
  POPGATE_ASSERT(readable_ != nullptr && event_add(readable_.get(), nullptr) == 0);
}

BackgroundTask::~BackgroundTask() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::start(std::function<void()> work, std::function<void()> done) {
  POPGATE_ASSERT(!is_running());
  done_ = std::move(done);
  const SignalsBlocked blocked;
  thread_ = std::thread([work = std::move(work), finished = finished_.get()] {
    work();
    const std::uint64_t one = 1;
    POPGATE_ASSERT(write(finished, &one, sizeof one) == sizeof one);
  });
}

void BackgroundTask::finish() {
  std::uint64_t count = 0;
  if (read(finished_.get(), &count, sizeof count) != sizeof count) return;
  thread_.join();
  std::exchange(done_, nullptr)();
}

}  // namespace popgate
