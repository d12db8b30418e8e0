// SPDX-License-Identifier: Apache-2.0
//
// One piece of pure work at a time on a thread of its own, and a call on the event loop when it is done: for what takes
// longer than the loop may be away (reading and compiling hundreds of thousands of rules takes seconds).
//
// Threads: start() and the destructor on the loop; `work` runs on the other thread and shares nothing with the loop
//          until `done` is called.
// Invariants: 1. `done` runs on the loop, after `work` has returned; not at all when the task is destroyed before.
//             2. The destructor waits for `work`.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "daemon/event_loop.h"
#include "libclient/file_descriptor.h"

namespace popgate {

class BackgroundTask {
 public:
  explicit BackgroundTask(const EventLoop& loop);
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  [[nodiscard]] bool is_running() const { return thread_.joinable(); }
  /// Nothing may be running. `done` may start the next piece.
  void start(std::function<void()> work, std::function<void()> done);

 private:
  void finish();

  FileDescriptor finished_;  // an eventfd: written by the thread, read by the loop
  std::unique_ptr<event, EventDeleter> readable_;
  std::function<void()> done_;
  std::thread thread_;
};

}  // namespace popgate
