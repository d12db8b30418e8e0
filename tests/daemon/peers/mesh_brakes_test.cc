// SPDX-License-Identifier: Apache-2.0
// Orders about blocking reach every node, also those that were away: real meshes on loopback sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/peers/pop_of_meshes.h"

namespace popgate {
namespace {

class MeshBrakesTest : public ::testing::Test {
 protected:
  MeshBrakesTest() {
    for (const std::string name : {"a", "b", "c"}) make_brakes(name);
  }
  // As daemon.cc wires them: what changes is told on.
  void make_brakes(const std::string& name) {
    brakes[name] = std::make_unique<Brakes>(name, [this, name](const Brakes::Change& change) {
      const auto& mesh = pop.node(name).mesh;
      const bool for_peers = change.side == BrakeSide::kPop && !change.untold;
      if (for_peers && mesh != nullptr) mesh->broadcast(change.brakes, change.from);
    });
  }
  void start(const std::string& name) {
    pop.start(name, [this, name](MeshOptions& options) {
      options.brakes = brakes.at(name).get();
      options.on_snapshot = [this, name](const std::string&) {
        pop.node(name).mesh->broadcast(brakes.at(name)->heard_peer(), 0);
      };
      options.figures = [this, name] { return wire::NodeFigures{brakes.at(name)->digest(), not_enforced, 0, {}}; };
    });
  }
  void start_all() {
    for (const std::string name : {"a", "b", "c"}) start(name);
    ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  }
  void order(const std::string& name, BrakeSide side, bool off) {
    ASSERT_TRUE(brakes.at(name)->order({.side = side, .rule = kEveryRule, .off = off, .reason = "x"}, PopClock::now()));
  }
  [[nodiscard]] bool all(bool off) {
    for (const auto& [name, one] : brakes) {
      if (one->is_off(kEveryRule, true) != off) return false;
    }
    return true;
  }

  PopOfMeshes pop{{"a", "b", "c"}};
  std::map<std::string, std::unique_ptr<Brakes>> brakes;
  std::uint64_t not_enforced = 0;
};

TEST_F(MeshBrakesTest, an_order_for_the_pop_reaches_all_and_one_for_the_node_nobody) {
  start_all();
  order("a", BrakeSide::kPop, true);
  ASSERT_TRUE(pop.run_until([&] { return all(true); }));
  EXPECT_EQ(brakes.at("c")->find(BrakeSide::kPop, kEveryRule)->ordered_by, "a");
  order("b", BrakeSide::kPop, false);
  ASSERT_TRUE(pop.run_until([&] { return all(false); }));
  order("c", BrakeSide::kNode, true);
  order("c", BrakeSide::kPop, false);  // told after it on the same connections
  ASSERT_TRUE(pop.run_until([&] {
    return brakes.at("a")->digest() == brakes.at("c")->digest() && brakes.at("b")->digest() == brakes.at("c")->digest();
  }));
  EXPECT_FALSE(brakes.at("a")->any_off());
  EXPECT_FALSE(brakes.at("b")->any_off());
}

TEST_F(MeshBrakesTest, a_node_that_was_away_with_an_old_order_gets_the_new_one_and_undoes_nothing) {
  start_all();
  order("a", BrakeSide::kPop, true);
  ASSERT_TRUE(pop.run_until([&] { return all(true); }));
  pop.kill("c");  // with its order
  order("a", BrakeSide::kPop, false);
  ASSERT_TRUE(pop.run_until([&] { return !brakes.at("b")->any_off(); }));
  EXPECT_TRUE(brakes.at("c")->any_off());
  start("c");
  ASSERT_TRUE(pop.run_until([&] { return all(false); }));
}

// Its file is lost and its clock is an hour behind: nothing that it can say by itself beats what the PoP was told.
TEST_F(MeshBrakesTest, off_on_a_node_that_has_lost_its_memory_holds_there_at_once_and_soon_everywhere) {
  start_all();
  order("a", BrakeSide::kPop, true);
  order("a", BrakeSide::kPop, false);
  ASSERT_TRUE(pop.run_until([&] { return brakes.at("c")->digest() == brakes.at("a")->digest(); }));
  pop.kill("c");
  make_brakes("c");
  Brakes& c = *brakes.at("c");
  c.expect_peers();
  const Brakes::Order off{.side = BrakeSide::kPop, .rule = kEveryRule, .off = true, .reason = "again"};
  ASSERT_TRUE(c.order(off, PopClock::now() - std::chrono::hours(1)));
  EXPECT_TRUE(c.any_off());
  start("c");
  ASSERT_TRUE(pop.run_until([&] {
    EXPECT_TRUE(c.any_off());
    return all(true);
  }));
  EXPECT_EQ(brakes.at("a")->find(BrakeSide::kPop, kEveryRule)->reason, "again");
  order("b", BrakeSide::kPop, false);
  ASSERT_TRUE(pop.run_until([&] { return all(false); })) << "from then on it is an order like any other";
}

TEST_F(MeshBrakesTest, an_order_passes_over_a_node_that_hears_both) {
  auto& to_c = pop.relay("a", "c");
  auto& to_a = pop.relay("c", "a");
  start_all();
  to_c.set_mode(TcpRelay::Mode::kCut);
  to_a.set_mode(TcpRelay::Mode::kCut);
  order("a", BrakeSide::kPop, true);
  ASSERT_TRUE(pop.run_until([&] { return brakes.at("c")->any_off(); }));
}

TEST_F(MeshBrakesTest, a_full_set_of_registers_arrives_in_several_frames) {
  for (std::uint64_t rule = 1; rule <= kBrakesMax; ++rule) {
    const Brakes::Order order{BrakeSide::kPop, rule, true, BrakeOrigin::kOperator, std::string(kReasonBytesMax, 'r')};
    ASSERT_TRUE(brakes.at("a")->order(order, PopClock::now()));
  }
  start_all();
  ASSERT_TRUE(pop.run_until([&] { return brakes.at("c")->digest() == brakes.at("a")->digest(); }));
  EXPECT_EQ(brakes.at("b")->registers(BrakeSide::kPop).size(), kBrakesMax);
}

TEST_F(MeshBrakesTest, peers_see_whether_orders_agree_and_how_much_finds_no_room) {
  not_enforced = 3;
  start_all();
  const auto b_of_a = [&] { return pop.node("a").peer("b"); };
  ASSERT_TRUE(pop.run_until([&] { return b_of_a().brakes_equal == true; }));
  EXPECT_EQ(b_of_a().figures->not_enforced, 3U);
  EXPECT_EQ(pop.node("a").figure("popgate_peers_not_enforced"), 6) << "of two peers";
  // One that b alone knows, as after a file was lost: seen as different until it is told.
  brakes.at("b")->restore(BrakeSide::kPop, {5, true, {1, 1}, {}, {}, "b", ""});
  ASSERT_TRUE(pop.run_until([&] { return b_of_a().brakes_equal == false; }));
}

TEST_F(MeshBrakesTest, a_node_without_brakes_is_told_and_skips_them) {
  pop.start("a", [this](MeshOptions& options) { options.brakes = brakes.at("a").get(); });
  pop.start("b");
  pop.start("c");
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  order("a", BrakeSide::kPop, true);
  pop.node("a").decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return pop.node("b").blocks(kClient); })) << "the connection was cut";
}

}  // namespace
}  // namespace popgate
