// SPDX-License-Identifier: Apache-2.0
//
// A shard that behaves as no memcached can be made to: every hit must still be accounted for once, and none sent twice.
#include "daemon/count/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "tests/daemon/count/counting_node.h"
#include "tests/daemon/count/scripted_shard.h"

namespace popgate {
namespace {

using Command = ScriptedShard::Command;

/// Says `odd` to every add or incr of a counter, and is an empty memcached otherwise.
ScriptedShard::Script odd_to_increments(const std::string& odd) {
  return [odd](const Command& command) {
    const bool generation = command.line.find(":generation") != std::string::npos;
    const bool changes = command.verb == "add" || command.verb == "incr";
    return changes && !generation ? odd : ScriptedShard::empty(command);
  };
}

class OddShard : public ::testing::Test {
 protected:
  void start(ScriptedShard::Script script, std::uint32_t batches_in_flight = 4) {
    shard = std::make_unique<ScriptedShard>(loop, std::move(script));
    CountersConfig config;
    config.shards.push_back({"odd", {"127.0.0.1", shard->port(), ""}, 1});
    config.timeout = milliseconds(200);
    config.batches_in_flight = batches_in_flight;
    node = std::make_unique<CountingNode>(loop, config);
    ASSERT_TRUE(run_until(loop, [&] { return node->all_shards_reachable(); }));
  }
  void expect_every_hit_is_accounted() const {
    const LedgerRow row = node->row();
    EXPECT_EQ(row[LedgerColumn::kDrained], row[LedgerColumn::kDelivered] + row[LedgerColumn::kUncertain] +
                                               row[LedgerColumn::kDropped] + row[LedgerColumn::kExpired] +
                                               node->held());
  }
  [[nodiscard]] bool settles() {
    return run_until(loop, [&] { return node->store().idle(); });
  }
  /// Commands that change a counter of a key.
  [[nodiscard]] std::size_t increments() const {
    std::size_t count = 0;
    for (const Command& command : shard->commands()) {
      const bool generation = command.line.find(":generation") != std::string::npos;
      if ((command.verb == "add" || command.verb == "incr") && !generation) ++count;
    }
    return count;
  }

  EventLoop loop;
  std::unique_ptr<ScriptedShard> shard;
  std::unique_ptr<CountingNode> node;
};

TEST_F(OddShard, replies_in_single_bytes_are_understood) {
  start(ScriptedShard::empty);
  shard->send_in_single_bytes();
  node->hit(test_key(1), 3);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), 3u);
  ASSERT_TRUE(run_until(loop, [&] { return !node->reports.empty(); }));
  EXPECT_TRUE(node->reports.back().fresh);
}

TEST_F(OddShard, a_reply_that_is_none_leaves_the_hits_uncertain_and_is_never_followed_by_another_try) {
  start(odd_to_increments("HELLO\r\n"));
  node->hit(test_key(1), 3);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), 3u);
  ASSERT_TRUE(run_until(loop, [&] { return node->all_shards_reachable(); })) << "it connects again";
  EXPECT_EQ(increments(), 1u);
  ASSERT_FALSE(node->reports.empty());
  EXPECT_FALSE(node->reports.back().fresh);
  EXPECT_EQ(node->reports.back().slots.at(0).hidden, 3u) << "it may or may not have been counted";
}

TEST_F(OddShard, the_reply_to_another_command_is_no_reply) {
  start(odd_to_increments("5\r\n"));  // to an add
  node->hit(test_key(1), 3);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), 3u);
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), 0u);
}

TEST_F(OddShard, error_is_not_taken_for_not_executed) {
  start(odd_to_increments("ERROR\r\n"));
  node->hit(test_key(1), 3);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), 3u);
}

TEST_F(OddShard, the_creation_chain_ends) {
  start([](const Command& command) -> std::string {
    if (command.line.find(":generation") != std::string::npos) return ScriptedShard::empty(command);
    if (command.verb == "add") return "NOT_STORED\r\n";  // as if it existed for add alone
    return ScriptedShard::empty(command);
  });
  node->hit(test_key(1), 3);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), 3u);
  EXPECT_EQ(increments(), 4u) << "the first command and three more";
}

// The chain's next command goes out with a flush that comes between the replies of the first batch.
TEST_F(OddShard, a_slot_whose_creation_chain_is_in_another_batch_was_not_read_by_the_first) {
  bool slow = false;
  start([&](const Command& command) -> std::string {
    if (command.line.find(":generation") != std::string::npos && command.verb == "add") return "STORED\r\n";
    if (command.verb == "add" && increments() == 1) return "NOT_STORED\r\n";
    return slow ? "" : ScriptedShard::empty(command);
  });
  slow = true;
  node->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return shard->count("incr") == 1; }));
  node->reports.clear();
  shard->send("END\r\n");  // of the first batch
  ASSERT_TRUE(run_until(loop, [&] { return !node->reports.empty() && node->reports.back().key == test_key(1); }));
  EXPECT_FALSE(node->reports.back().fresh) << "eight hits stand there, and nobody has read them";
}

TEST_F(OddShard, hits_of_a_creation_chain_that_a_hold_cuts_wait_and_are_dropped_like_others) {
  bool first = true;
  start([&](const Command& command) -> std::string {
    const bool counter = command.verb == "add" && command.line.find(":generation") == std::string::npos;
    if (!counter || !std::exchange(first, false)) return ScriptedShard::empty(command);
    node->store().hold_increments(Hold::kClockOff);
    return "NOT_STORED\r\n";  // an incr would be next
  });
  node->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return node->metric("popgate_count_hits_unsent") == 3; }));
  EXPECT_EQ(increments(), 1u) << "nothing is sent while held";
  node->store().drop_unsent();
  node->store().hold_increments(Hold::kNone);
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kDropped), 3u);
  expect_every_hit_is_accounted();
}

TEST_F(OddShard, a_shard_without_memory_is_asked_again_with_the_next_flush_and_not_in_a_loop) {
  bool full = true;
  start([&](const Command& command) -> std::string {
    const bool counter = command.verb == "add" && command.line.find(":generation") == std::string::npos;
    return counter && full ? "SERVER_ERROR out of memory storing object\r\n" : ScriptedShard::empty(command);
  });
  node->hit(test_key(1), 3);
  int ticks = 0;
  Timer ticking(loop, [&] { ++ticks; });
  ticking.start_every(milliseconds(10));  // the node's own flush interval
  ASSERT_TRUE(run_until(loop, [&] { return ticks >= 10; }));
  EXPECT_GE(increments(), 2u);
  EXPECT_LE(increments(), 12u);
  EXPECT_EQ(node->held(), 3u);
  full = false;
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), 3u);
}

TEST_F(OddShard, a_client_error_drops_the_hits_and_keeps_what_stands_behind_an_incr) {
  start([](const Command& command) -> std::string {
    if (command.verb == "incr") return "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    return ScriptedShard::empty(command);
  });
  node->hit(test_key(1), 1);
  ASSERT_TRUE(settles());
  node->hit(test_key(1), 5);  // an incr now
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kDropped), 5u);
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), 1u);
  EXPECT_EQ(node->metric("popgate_count_shard_disconnects"), 0);
}

TEST_F(OddShard, a_value_that_was_not_asked_for_ends_the_connection) {
  bool odd = false;
  start([&](const Command& command) -> std::string {
    return command.verb == "get" && odd ? "VALUE pg1:0:{x}:1:1 0 1\r\n7\r\nEND\r\n" : ScriptedShard::empty(command);
  });
  odd = true;
  node->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return node->metric("popgate_count_shard_disconnects") >= 1; }));
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), 3u) << "its reply had come before";
  ASSERT_FALSE(node->reports.empty());
  EXPECT_FALSE(node->reports.back().fresh);
}

TEST_F(OddShard, a_reply_nobody_asked_for_ends_the_connection) {
  start(ScriptedShard::empty);
  shard->send("STORED\r\n");
  EXPECT_TRUE(run_until(loop, [&] { return node->metric("popgate_count_shard_disconnects") >= 1; }));
}

TEST_F(OddShard, a_shard_that_dribbles_is_given_up_at_the_deadline) {
  bool dribbles = false;
  start([&](const Command& command) -> std::string { return dribbles ? "" : ScriptedShard::empty(command); });
  dribbles = true;
  Timer dribble(loop, [&] { shard->send("S"); });  // never a whole line, but always something new
  dribble.start_every(milliseconds(20));
  node->hit(test_key(1), 3);
  ASSERT_TRUE(run_until(loop, [&] { return node->metric("popgate_count_shard_timeouts") >= 1; }));
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), 3u);
}

TEST_F(OddShard, what_the_kernel_never_got_is_sent_again_and_what_it_got_is_not) {
  start(ScriptedShard::empty, 64);
  shard->stop_reading();
  constexpr std::uint64_t kKeys = 20'000;  // 8 MB of commands; the kernel takes 2 to 4
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(test_key(i));
  node->hit(keys, 1);
  EXPECT_EQ(node->held(), kKeys);
  const auto in_flight = static_cast<std::uint64_t>(node->metric("popgate_count_hits_in_flight"));
  ASSERT_TRUE(run_until(loop, [&] { return node->metric("popgate_count_shard_timeouts") == 1; }));
  const std::uint64_t uncertain = node->column(LedgerColumn::kUncertain);
  EXPECT_GT(uncertain, 0u) << "some bytes left";
  EXPECT_LT(uncertain, in_flight) << "some did not";
  expect_every_hit_is_accounted();
  shard->read_again();
  ASSERT_TRUE(settles());
  EXPECT_EQ(node->column(LedgerColumn::kUncertain), uncertain);
  EXPECT_EQ(node->column(LedgerColumn::kDelivered), kKeys - uncertain);
  std::map<std::string, int> times;
  for (const Command& command : shard->commands()) {
    if (command.verb == "add" && command.line.find(":generation") == std::string::npos) ++times[command.line];
  }
  for (const auto& [command, count] : times) EXPECT_EQ(count, 1) << command;
}

TEST_F(OddShard, a_connection_that_ends_in_mid_flight_sends_no_increment_twice) {
  std::map<std::string, int> seen;
  int answered = 0;
  start([&](const Command& command) -> std::string {
    const bool counter = command.verb == "add" && command.line.find(":generation") == std::string::npos;
    if (!counter) return ScriptedShard::empty(command);
    ++seen[command.line];
    return ++answered <= 300 ? "STORED\r\n" : "";  // then silence
  });
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < 1000; ++i) keys.push_back(test_key(i));
  node->hit(keys, 1);
  ASSERT_TRUE(run_until(loop, [&] { return node->column(LedgerColumn::kDelivered) == 300; }));
  shard->close_all();
  ASSERT_TRUE(run_until(loop, [&] { return node->column(LedgerColumn::kUncertain) > 0; }));
  answered = -1'000'000;
  ASSERT_TRUE(settles());
  expect_every_hit_is_accounted();
  EXPECT_EQ(node->column(LedgerColumn::kDelivered) + node->column(LedgerColumn::kUncertain), 1000u);
  for (const auto& [command, times] : seen) EXPECT_EQ(times, 1) << command;
}

}  // namespace
}  // namespace popgate
