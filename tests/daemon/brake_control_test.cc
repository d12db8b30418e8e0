// SPDX-License-Identifier: Apache-2.0
//
// Orders and the mesh, wired as in a daemon, where the way to a peer is there before the way back.
#include "daemon/brake_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/collect/ledger.h"
#include "daemon/publish/publisher.h"
#include "daemon/rule_names.h"
#include "tests/daemon/peers/pop_of_meshes.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/publish/worker_view.h"

namespace popgate {
namespace {

class BrakeControlTest : public ::testing::Test {
 protected:
  BrakeControlTest() {
    std::vector<std::string> notes;
    auto opened = Publisher::open({run_.path(), state_.path(), 1000, 1, "a"}, notes);
    if (!opened) throw std::runtime_error(opened.error());
    publisher_ = *std::move(opened);
    Mitigations::Options options;
    options.node_name = "a";
    options.entries_max = 1000;
    set_ = std::make_unique<Mitigations>(options, [](const Mitigation&, const Origin&) {});
    control_ = std::make_unique<BrakeControl>(
        BrakeControl::Setup{"a", pop_.loop(), rules_, names_, *ledger_, *set_, *publisher_, [](RuleId) {}, true});
    control_->restore();
  }
  void start() {
    pop_.start("b", [this](MeshOptions& options) { options.brakes = &peers_; });
    pop_.start("a", [this](MeshOptions& options) {
      options.brakes = &control_->brakes();
      options.on_snapshot = [this](const std::string&) { control_->heard_peer(); };
    });
    control_->use_mesh(pop_.node("a").mesh.get());
  }

  TestFolder run_;
  TestFolder state_;
  PopOfMeshes pop_{{"a", "b"}};
  SharedRules rules_ = std::make_shared<const RuleSet>();
  RuleNames names_{""};
  std::unique_ptr<Ledger> ledger_ = Ledger::in_memory();
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Mitigations> set_;
  std::unique_ptr<BrakeControl> control_;
  Brakes peers_{"b", [](const Brakes::Change&) {}};
};

TEST_F(BrakeControlTest, what_was_untold_goes_to_peers_that_were_greeted_before_one_was_heard) {
  TcpRelay& to_a = pop_.relay("b", "a");
  to_a.set_mode(TcpRelay::Mode::kCut);
  start();
  ASSERT_TRUE(pop_.run_until([&] { return pop_.node("a").peer("b").up_to_date; }));
  ASSERT_TRUE(control_->order({.side = BrakeSide::kPop, .rule = kEveryRule, .off = true, .reason = "x"}));
  EXPECT_TRUE(control_->brakes().is_off(kEveryRule, true));
  EXPECT_TRUE(control_->brakes().is_untold(BrakeSide::kPop, kEveryRule));
  EXPECT_FALSE(peers_.any_off());
  to_a.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop_.run_until([&] { return peers_.any_off(); }));
  EXPECT_FALSE(control_->brakes().is_untold(BrakeSide::kPop, kEveryRule));
}

// An entry of a deleted rule is still in the table when the rule's number is no longer known.
TEST_F(BrakeControlTest, what_is_off_stays_off_while_a_rule_that_goes_is_taken_out_of_the_table) {
  const Key key{0x1234, 0xabcdef0000000001};
  const HostInstant now = HostClock::now();
  Rule rule;
  rule.name = "login";
  rule.id = rule_id("login");
  rule.number = 3;
  rules_ = std::make_shared<const RuleSet>(RuleSet({rule}));
  control_->use_rules(RuleSet(), [] {});
  publisher_->reconcile([](const Key&) { return std::nullopt; }, now);
  publisher_->enforce(key, Enforcement{key, rule.number, now + std::chrono::hours(1), false, false}, now);
  ASSERT_TRUE(control_->order({.side = BrakeSide::kNode, .rule = rule.id, .off = true, .reason = "x"}));

  const SharedRules before = std::exchange(rules_, std::make_shared<const RuleSet>());
  TableAnswer meanwhile;
  control_->use_rules(*before, [&] {
    meanwhile = WorkerView(publisher_->table_descriptor(), publisher_->table_bytes())->look_up(key, now);
    publisher_->enforce(key, std::nullopt, now);
  });
  EXPECT_TRUE(meanwhile.live);
  EXPECT_NE(meanwhile.flags & kTableFlagLogOnly, 0);
  EXPECT_THAT(control_->brakes().effect(*rules_).rules, testing::IsEmpty());
}

}  // namespace
}  // namespace popgate
