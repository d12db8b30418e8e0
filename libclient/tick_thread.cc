// SPDX-License-Identifier: Apache-2.0
#include "libclient/tick_thread.h"

#include <signal.h>
#include <time.h>

#include <cerrno>

namespace popgate {

bool TickThread::start(Function function, void* context) noexcept {
  function_ = function;
  context_ = context;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&wake_, &attributes);
  pthread_condattr_destroy(&attributes);
  // The thread inherits the mask: blocked before it exists, so that there is no moment in which a signal finds it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, nullptr, &TickThread::run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  running_ = error == 0;
  return running_;
}

void TickThread::stop() noexcept {
  if (!running_) return;
  pthread_mutex_lock(&mutex_);
  stopping_ = true;
  pthread_cond_signal(&wake_);
  pthread_mutex_unlock(&mutex_);
  pthread_join(thread_, nullptr);
  pthread_cond_destroy(&wake_);
  running_ = false;
}

void* TickThread::run(void* self) noexcept {
  auto* const thread = static_cast<TickThread*>(self);
  pthread_setname_np(pthread_self(), "popgate-tick");
  while (thread->wait_period()) thread->function_(thread->context_);
  return nullptr;
}

// False when it is time to stop.
bool TickThread::wait_period() noexcept {
  timespec deadline{};
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_nsec += std::chrono::nanoseconds(kTickPeriod).count();
  if (deadline.tv_nsec >= 1'000'000'000) {
    deadline.tv_nsec -= 1'000'000'000;
    ++deadline.tv_sec;
  }
  pthread_mutex_lock(&mutex_);
  while (!stopping_ && pthread_cond_timedwait(&wake_, &mutex_, &deadline) != ETIMEDOUT) {
  }
  const bool go_on = !stopping_;
  pthread_mutex_unlock(&mutex_);
  return go_on;
}

}  // namespace popgate
