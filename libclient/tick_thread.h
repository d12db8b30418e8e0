// SPDX-License-Identifier: Apache-2.0
//
// Calls a function every kTickPeriod from a thread of its own, for embedders without a timer.
//
// Threads: start() and stop() by the owner.
// Invariants: 1. After stop() returns the function is not running and is not called again.
//             2. No signal of the embedder is delivered to the thread.
#pragma once

#include <pthread.h>

#include <chrono>

namespace popgate {

inline constexpr std::chrono::milliseconds kTickPeriod{100};

class TickThread {
 public:
  using Function = void (*)(void* context);

  /// False, with the reason in errno, when there is no thread to be had.
  [[nodiscard]] bool start(Function function, void* context) noexcept;
  void stop() noexcept;
  [[nodiscard]] bool is_running() const noexcept { return running_; }

 private:
  static void* run(void* self) noexcept;
  [[nodiscard]] bool wait_period() noexcept;

  Function function_ = nullptr;
  void* context_ = nullptr;
  pthread_t thread_{};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_{};
  bool running_ = false;
  bool stopping_ = false;  // under mutex_
};

}  // namespace popgate
