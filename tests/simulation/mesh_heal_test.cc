// SPDX-License-Identifier: Apache-2.0
// A mesh as large as one may be, through a minute of a network that loses half of all packets.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/simulation/entry_check.h"

namespace popgate::simulation {
namespace {

using std::chrono::seconds;

Rule a_rule() {
  Rule rule;
  rule.name = "login";
  rule.number = 1;
  rule.key = {{}};
  rule.limit = 10;
  rule.window = WindowShape::make(seconds(10), kSlotsDefault, Pop::kTolerance);
  rule.mitigate = seconds(600);
  identify(rule);
  return rule;
}

class LossyMesh {
 public:
  LossyMesh(std::size_t nodes, std::uint64_t seed)
      : world_(seed), random_(world_.random_for("test")), pop_(world_, shape_of(nodes)), entries_(pop_) {
    spdlog::set_level(spdlog::level::off);
    pop_.watch({.judged = {}, .turn = [this](Node& node) { entries_.turn(node); }});
    pop_.start();
  }

  void lose(double share) {
    for (const auto& a : pop_.nodes()) {
      share > 0 ? pop_.conditions().disturb(a->host()) : pop_.conditions().restore(a->host());
      for (const auto& b : pop_.nodes()) pop_.network().path(a->host(), b->host()).loss = a == b ? 0 : share;
    }
  }
  /// Some node blocks a client, or lifts one that was blocked.
  void act() {
    Node& node = *pop_.nodes()[static_cast<std::size_t>(draw(random_, 0, pop_.nodes().size() - 1))];
    if (keys_.empty() || chance(random_, 0.8)) keys_.push_back({random_(), random_()});
    const Key key = keys_[static_cast<std::size_t>(draw(random_, 0, keys_.size() - 1))];
    const bool lifts = chance(random_, 0.2);
    node.process().post([&node, key, lifts] {
      Mitigations& set = node.pipeline().mitigations();
      const HostInstant now = node.process().host_now();
      const PopInstant wall = node.process().wall_now();
      EXPECT_TRUE(lifts ? set.lift({key, wall, ""}, now, wall) : set.block({key, 0, seconds(600), ""}, now, wall));
    });
  }
  void run(microseconds duration) { world_.run_until(world_.now() + duration); }
  [[nodiscard]] std::string difference() const { return entries_.difference(); }
  [[nodiscard]] const std::string& fault() const { return pop_.fault(); }
  [[nodiscard]] ModelInstant now() const { return world_.now(); }

 private:
  static Pop::Shape shape_of(std::size_t nodes) {
    return {.nodes = nodes, .shards = 0, .rules = RuleSet(std::vector<Rule>{a_rule()})};
  }
  World world_;
  Random random_;
  Pop pop_;
  EntryCheck entries_;
  std::vector<Key> keys_;
};

// In model time; the decisions go on until the network heals.
microseconds time_to_heal(std::size_t nodes, std::uint64_t seed) {
  LossyMesh mesh(nodes, seed);
  mesh.run(seconds(5));
  EXPECT_EQ(mesh.difference(), "");
  mesh.lose(0.5);
  for (int i = 0; i < 120; ++i) {
    mesh.act();
    mesh.run(milliseconds(500));
  }
  for (int i = 0; i < 5; ++i) mesh.act();  // under way when the network heals
  mesh.run(milliseconds(20));
  EXPECT_NE(mesh.difference(), "") << "nothing was lost that had to be healed";
  mesh.lose(0);
  const ModelInstant healed = mesh.now();
  while (!mesh.difference().empty() && mesh.now() - healed < seconds(30)) mesh.run(milliseconds(50));
  EXPECT_EQ(mesh.fault(), "");
  return mesh.now() - healed;
}

TEST(SimulatedMesh, of_8_nodes_heals_within_2_s_after_60_s_at_half_loss) {
#ifdef NDEBUG
  constexpr std::uint64_t kSeeds = 5;
#else
  constexpr std::uint64_t kSeeds = 1;  // a sanitizer's build takes half a minute for each
#endif
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) EXPECT_LE(time_to_heal(8, seed), seconds(2)) << "seed " << seed;
}

#ifdef NDEBUG
TEST(SimulatedMesh, of_64_nodes_heals_within_2_s_after_60_s_at_half_loss) {
  EXPECT_LE(time_to_heal(Pop::kNodesMax, 1), seconds(2));
}
#endif

}  // namespace
}  // namespace popgate::simulation
