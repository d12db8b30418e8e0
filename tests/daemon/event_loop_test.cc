// SPDX-License-Identifier: Apache-2.0
#include "daemon/event_loop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace popgate {
namespace {

using std::chrono::milliseconds;

TEST(EventLoop, periodic_timer_calls_back_until_it_is_stopped) {
  EventLoop loop;
  int calls = 0;
  Timer timer(loop, [&] {
    if (++calls == 3) timer.stop();
  });
  Timer end(loop, [&] { loop.stop(); });
  timer.start_every(milliseconds(1));
  end.start_once(milliseconds(50));
  loop.run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, a_write_to_a_connection_that_the_other_side_closed_is_an_error_and_no_signal) {
  signal(SIGPIPE, SIG_DFL);
  const EventLoop loop;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(EventLoop, timer_that_is_gone_does_not_call_back) {
  EventLoop loop;
  bool called = false;
  {
    Timer timer(loop, [&] { called = true; });
    timer.start_once(milliseconds(0));
  }
  Timer end(loop, [&] { loop.stop(); });
  end.start_once(milliseconds(10));
  loop.run();
  EXPECT_FALSE(called);
}

TEST(EventLoop, timer_may_start_itself_again_from_its_callback) {
  EventLoop loop;
  int calls = 0;
  Timer timer(loop, [&] { ++calls < 3 ? timer.start_once(milliseconds(1)) : loop.stop(); });
  timer.start_once(milliseconds(1));
  loop.run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, signal_is_handled_on_the_loop) {
  EventLoop loop;
  Signal signal(loop, SIGHUP, [&] { loop.stop(); });
  ASSERT_EQ(raise(SIGHUP), 0);
  loop.run();  // returns only when the callback has run
}

}  // namespace
}  // namespace popgate
