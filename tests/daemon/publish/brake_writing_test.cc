// SPDX-License-Identifier: Apache-2.0
//
// Brakes of a daemon with a loop: written on a thread, while the loop and the workers go on.
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/event_loop.h"
#include "daemon/publish/publisher.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

const Key kKey{0x1234, 0xabcdef0000000001};
const PopInstant kWall{std::chrono::seconds(1'700'000'000)};

class BrakeWritingTest : public testing::Test {
 protected:
  BrakeWritingTest() {
    std::vector<std::string> notes;
    auto opened = Publisher::open({run_.path(), state_.path(), 1000, 1, "node-a", &loop_}, notes);
    if (!opened) throw std::runtime_error(opened.error());
    publisher_ = *std::move(opened);
    const HostInstant now = HostClock::now();
    publisher_->reconcile([](const Key&) { return std::nullopt; }, now);
    publisher_->enforce(kKey, Enforcement{kKey, 3, now + std::chrono::hours(1), false, false}, now);
  }
  void order(bool off) {
    ASSERT_TRUE(brakes_.order({.side = BrakeSide::kNode, .rule = kEveryRule, .off = off, .reason = "test"}, kWall));
  }
  bool blocks() {
    const WorkerView view(publisher_->table_descriptor(), publisher_->table_bytes());
    return (view->look_up(kKey, HostClock::now()).flags & kTableFlagLogOnly) == 0;
  }
  /// Until the disk has answered.
  void run() {
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(20);
    Timer poll(loop_, [&] {
      if (!keeper().is_pending() || HostClock::now() > deadline) loop_.stop();
    });
    poll.start_every(std::chrono::milliseconds(1));
    loop_.run();
    EXPECT_FALSE(keeper().is_pending());
  }
  BrakeKeeper& keeper() { return publisher_->brakes(); }
  /// What the next daemon would read.
  std::optional<bool> stored_off() {
    std::string note;
    const auto stored = BrakeFile(state_.file("brakes"), node_id("node-a")).load(note);
    if (!stored || stored->registers.empty()) return std::nullopt;
    return stored->registers[0].brake.off;
  }

  TestFolder run_;
  TestFolder state_;
  EventLoop loop_;
  std::unique_ptr<Publisher> publisher_;
  RuleSet rules_;
  Brakes brakes_{"node-a", [this](const Brakes::Change&) { keeper().publish(brakes_, rules_, HostClock::now()); }};
};

TEST_F(BrakeWritingTest, an_order_is_in_force_before_the_disk_has_answered_and_until_then_not_called_written) {
  EXPECT_TRUE(blocks());
  order(true);
  EXPECT_FALSE(blocks());
  EXPECT_TRUE(keeper().is_pending()) << "its thread ends on the loop, which has not turned";
  EXPECT_FALSE(keeper().is_written());
  run();
  EXPECT_TRUE(keeper().is_written());
  EXPECT_EQ(stored_off(), true);
}

TEST_F(BrakeWritingTest, of_orders_given_while_one_is_written_the_last_is_on_disk_in_the_end) {
  for (int i = 0; i < 20; ++i) order(i % 2 == 0);
  run();
  EXPECT_EQ(stored_off(), false);
}

TEST_F(BrakeWritingTest, a_daemon_that_stops_at_once_has_written_its_last_order) {
  order(true);  // being written
  order(true);
  order(false);
  publisher_.reset();
  EXPECT_EQ(stored_off(), false);
}

TEST_F(BrakeWritingTest, a_write_that_fails_is_tried_again) {
  std::filesystem::create_directory(state_.file("brakes.new"));
  order(true);
  run();
  EXPECT_FALSE(keeper().is_written());
  std::filesystem::remove(state_.file("brakes.new"));
  keeper().retry(brakes_, HostClock::now() + kBrakeRetryInterval);
  run();
  EXPECT_TRUE(keeper().is_written());
  EXPECT_EQ(stored_off(), true);
}

}  // namespace
}  // namespace popgate
