// SPDX-License-Identifier: Apache-2.0
#include "daemon/background_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace popgate {
namespace {

TEST(BackgroundTask, work_runs_beside_the_loop_and_done_on_it) {
  EventLoop loop;
  BackgroundTask task(loop);
  std::promise<void> loop_turned;
  std::thread::id worker;
  std::thread::id finisher;
  // The work waits for the loop: it could not end if it ran on it.
  Timer timer(loop, [&] { loop_turned.set_value(); });
  timer.start_once(std::chrono::milliseconds(1));
  task.start(
      [&] {
        loop_turned.get_future().wait();
        worker = std::this_thread::get_id();
      },
      [&] {
        finisher = std::this_thread::get_id();
        loop.stop();
      });
  loop.run();
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_EQ(finisher, std::this_thread::get_id());
  EXPECT_FALSE(task.is_running());
}

TEST(BackgroundTask, done_may_start_the_next_piece) {
  EventLoop loop;
  BackgroundTask task(loop);
  int pieces = 0;
  task.start([&] { ++pieces; }, [&] { task.start([&] { ++pieces; }, [&] { loop.stop(); }); });
  loop.run();
  EXPECT_EQ(pieces, 2);
}

TEST(BackgroundTask, destruction_waits_for_the_work_and_drops_the_call) {
  EventLoop loop;
  std::atomic<bool> worked = false;
  bool called = false;
  {
    BackgroundTask task(loop);
    task.start([&] { worked = true; }, [&] { called = true; });
  }
  EXPECT_TRUE(worked);
  Timer end(loop, [&] { loop.stop(); });
  end.start_once(std::chrono::milliseconds(5));
  loop.run();
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace popgate
