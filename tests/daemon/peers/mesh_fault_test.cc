// SPDX-License-Identifier: Apache-2.0
// Cut, stalled and slow links, impostors and rubbish: nothing of it stops the rest of the mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "tests/daemon/peers/peer_messages.h"
#include "tests/daemon/peers/pop_of_meshes.h"
#include "tests/daemon/peers/raw_peer.h"

namespace popgate {
namespace {

using ::testing::HasSubstr;

class MeshFaultTest : public ::testing::Test {
 protected:
  MeshNode& a() { return pop.node("a"); }
  MeshNode& b() { return pop.node("b"); }
  void start_settled(const PopOfMeshes::Tune& tune = {}) {
    pop.start_all(tune);
    ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  }

  PopOfMeshes pop{{"a", "b"}};
};

TEST_F(MeshFaultTest, what_was_decided_while_a_link_was_cut_arrives_when_it_heals) {
  TcpRelay& wire = pop.relay("a", "b");
  start_settled();
  wire.set_mode(TcpRelay::Mode::kCut);
  ASSERT_TRUE(pop.run_until([&] { return !a().peer("b").up_to_date; }));
  a().decide(kClient);
  const std::uint64_t losses = a().peer("b").losses;
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").losses >= losses + 3; })) << "it tries again and again";
  EXPECT_FALSE(b().blocks(kClient));
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return b().blocks(kClient); }));
  EXPECT_EQ(a().peer("b").connects, 2U);
}

TEST_F(MeshFaultTest, a_late_copy_does_not_live_longer) {
  TcpRelay& wire = pop.relay("a", "b");
  b().reactor.boot_offset = hours(3);
  start_settled();
  wire.set_mode(TcpRelay::Mode::kStall);
  a().decide(kClient, minutes(1));
  const HostInstant end_on_a = a().set->enforcement(kClient, a().now())->until;
  const HostInstant until = HostClock::now() + milliseconds(800);
  ASSERT_TRUE(pop.run_until([&] { return HostClock::now() >= until; }));
  EXPECT_FALSE(b().blocks(kClient));
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return b().blocks(kClient); }));
  const HostInstant end_on_b = b().set->enforcement(kClient, b().now())->until - b().reactor.boot_offset;
  EXPECT_LT(end_on_b - end_on_a, milliseconds(400)) << "the stall of 800 ms is not added";
}

TEST_F(MeshFaultTest, a_link_that_acknowledges_nothing_is_cut_and_tried_again) {
  TcpRelay& wire = pop.relay("a", "b");
  start_settled([](MeshOptions& options) { options.timings.silence_max = milliseconds(200); });
  wire.set_mode(TcpRelay::Mode::kStall);
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").last_error == "nothing acknowledged in time"; }));
  ASSERT_TRUE(pop.run_until([&] { return !b().peer("a").heard; }));
  a().decide(kClient);
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return b().blocks(kClient); }));
}

TEST_F(MeshFaultTest, a_hello_that_is_not_answered_is_given_up) {
  TcpRelay& wire = pop.relay("a", "b");
  wire.set_mode(TcpRelay::Mode::kStall);
  pop.start_all([](MeshOptions& options) { options.timings.hello_timeout = milliseconds(100); });
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").last_error == "hello not answered in time"; }));
}

TEST_F(MeshFaultTest, a_peer_that_reads_too_slowly_is_cut_and_gets_all_when_it_is_back) {
  TcpRelay& wire = pop.relay("a", "b");
  start_settled([](MeshOptions& options) { options.output_bytes_max = 64 * 1024; });
  wire.set_mode(TcpRelay::Mode::kStall);
  std::uint64_t decided = 0;
  while (a().peer("b").slow_cuts == 0 && decided < 10'000) {
    a().decide({decided, decided});
    ++decided;
  }
  EXPECT_EQ(a().peer("b").slow_cuts, 1U);
  EXPECT_THAT(a().peer("b").last_error, HasSubstr("65536 bytes"));
  for (int more = 0; more < 100; ++more, ++decided) a().decide({decided, decided});
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return b().set->digest() == a().set->digest(); }));
  EXPECT_EQ(b().set->digest().entries, decided);
}

TEST_F(MeshFaultTest, a_snapshot_larger_than_the_output_bound_still_arrives_whole) {
  const auto small = [](MeshOptions& options) { options.output_bytes_max = kSnapshotOutputBytes; };
  pop.start("a", small);
  for (std::uint64_t i = 0; i < 20'000; ++i) a().decide({i * 0x9e3779b97f4a7c15, i});  // some 3 MB on the wire
  pop.start("b", small);
  ASSERT_TRUE(pop.run_until([&] { return b().set->digest() == a().set->digest(); }));
  EXPECT_EQ(a().peer("b").slow_cuts, 0U);
}

TEST_F(MeshFaultTest, a_second_daemon_of_a_living_name_is_refused_and_told_why) {
  start_settled();
  RawPeer twin(pop.base(), pop.port_of("a"));
  twin.send(hello_as("b"));
  ASSERT_TRUE(pop.run_until([&] { return twin.is_closed(); }));
  ASSERT_NE(twin.heard_first<wire::Refused>(), nullptr);
  EXPECT_THAT(twin.heard_first<wire::Refused>()->reason, HasSubstr("node name clash"));
  EXPECT_TRUE(a().peer("b").heard) << "the first one goes on";
  EXPECT_EQ(a().figure("popgate_peers_hellos_refused"), 1);
}

TEST_F(MeshFaultTest, a_new_daemon_takes_over_from_one_that_has_been_silent) {
  pop.start("a");
  RawPeer silent(pop.base(), pop.port_of("a"));
  silent.send(hello_as("b", 1));
  ASSERT_TRUE(pop.run_until([&] { return silent.heard_first<wire::Hello>() != nullptr; }));
  RawPeer next(pop.base(), pop.port_of("a"));
  const HostInstant heard = HostClock::now();
  ASSERT_TRUE(pop.run_until([&] { return HostClock::now() - heard > kAliveWithin; }));
  next.send(hello_as("b", 2));
  ASSERT_TRUE(pop.run_until([&] { return next.heard_first<wire::Hello>() != nullptr; }));
  EXPECT_TRUE(pop.run_until([&] { return silent.is_closed(); }));
}

struct Mismatch {
  const char* name;
  void (*tune)(MeshOptions&);
  const char* reason;
};

void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }

class MeshMismatchTest : public MeshFaultTest, public ::testing::WithParamInterface<Mismatch> {};

TEST_P(MeshMismatchTest, is_refused_on_both_sides_and_nothing_is_shared) {
  pop.start("a");
  pop.start("b", GetParam().tune);
  ASSERT_TRUE(pop.run_until([&] { return !a().peer("b").last_error.empty() && !b().peer("a").last_error.empty(); }));
  EXPECT_THAT(b().peer("a").last_error, HasSubstr(GetParam().reason));
  b().decide(kClient);
  a().decide({1, 1});
  const std::uint64_t losses = a().peer("b").losses;
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").losses >= losses + 2; }));
  EXPECT_FALSE(a().blocks(kClient));
  EXPECT_FALSE(b().blocks({1, 1}));
}

INSTANTIATE_TEST_SUITE_P(
    Mesh, MeshMismatchTest,
    ::testing::Values(Mismatch{"another_secret", [](MeshOptions& o) { o.secret_id = 2; }, "another hash secret"},
                      Mismatch{"another_pop", [](MeshOptions& o) { o.pop = "other"; }, "another PoP"},
                      Mismatch{"an_unknown_name", [](MeshOptions& o) { o.node = "x"; }, "unknown node name"},
                      Mismatch{"no_common_version", [](MeshOptions& o) { o.version_min = o.version_max = 9; },
                               "no common version"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(MeshFaultTest, a_stranger_with_another_protocol_is_cut_and_counted_and_the_others_go_on) {
  start_settled();
  RawPeer stranger(pop.base(), pop.port_of("a"));
  stranger.send_bytes("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(pop.run_until([&] { return stranger.is_closed(); }));
  EXPECT_EQ(a().figure("popgate_peers_accepted_rubbish_cuts"), 1);
  a().decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return b().blocks(kClient); }));
}

TEST_F(MeshFaultTest, nothing_is_believed_before_a_hello) {
  pop.start("a");
  RawPeer stranger(pop.base(), pop.port_of("a"));
  stranger.send(entry_of(1, kClient));
  ASSERT_TRUE(pop.run_until([&] { return stranger.is_closed(); }));
  EXPECT_FALSE(a().blocks(kClient));
}

TEST_F(MeshFaultTest, a_greeted_peer_that_sends_rubbish_is_cut_counted_and_has_to_wait) {
  pop.start("a", [](MeshOptions& options) {
    options.timings.backoff_first = hours(1);
    options.timings.backoff_longest = hours(1);
  });
  auto peer = std::make_unique<RawPeer>(pop.base(), pop.port_of("a"));
  peer->send(hello_as("b"));
  peer->send(entry_of(1, kClient));
  ASSERT_TRUE(pop.run_until([&] { return a().blocks(kClient); }));
  peer->send_bytes(frame_of("\xff\xff rubbish"));
  ASSERT_TRUE(pop.run_until([&] { return peer->is_closed(); }));
  EXPECT_EQ(a().peer("b").rubbish_cuts, 1U);
  EXPECT_TRUE(a().blocks(kClient)) << "what it said before stands";
  peer = std::make_unique<RawPeer>(pop.base(), pop.port_of("a"));
  peer->send(hello_as("b"));
  ASSERT_TRUE(pop.run_until([&] { return peer->is_closed(); }));
  ASSERT_NE(peer->heard_first<wire::Refused>(), nullptr);
  EXPECT_THAT(peer->heard_first<wire::Refused>()->reason, HasSubstr("rubbish"));
}

TEST_F(MeshFaultTest, a_gap_in_the_sequence_is_rubbish) {
  pop.start("a");
  RawPeer peer(pop.base(), pop.port_of("a"));
  peer.send(hello_as("b"));
  peer.send(entry_of(2, kClient));
  ASSERT_TRUE(pop.run_until([&] { return peer.is_closed(); }));
  EXPECT_FALSE(a().blocks(kClient));
  EXPECT_EQ(a().peer("b").rubbish_cuts, 1U);
}

TEST_F(MeshFaultTest, an_acknowledgement_follows_the_merge) {
  pop.start("a");
  RawPeer peer(pop.base(), pop.port_of("a"));
  peer.send(hello_as("b"));
  peer.send(entry_of(1, kClient));
  peer.send(entry_of(2, {2, 2}));
  ASSERT_TRUE(pop.run_until([&] {
    const auto* ack = peer.heard().empty() ? nullptr : std::get_if<wire::Ack>(&peer.heard().back());
    return ack != nullptr && ack->sequence == 2;
  }));
  EXPECT_TRUE(a().blocks(kClient));
  EXPECT_TRUE(a().blocks({2, 2}));
}

TEST_F(MeshFaultTest, a_server_that_answers_rubbish_is_cut_counted_and_tried_again_later) {
  TcpRelay& wire = pop.relay("a", "b");
  wire.set_mode(TcpRelay::Mode::kRubbish);
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return a().peer("b").rubbish_cuts >= 3; }));
  EXPECT_THAT(a().peer("b").last_error, HasSubstr("frame length"));
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
}

TEST_F(MeshFaultTest, connections_without_a_hello_are_bounded_and_end) {
  pop.start("a", [](MeshOptions& options) { options.timings.hello_timeout = milliseconds(300); });
  std::vector<std::unique_ptr<RawPeer>> strangers;
  for (std::size_t i = 0; i < kHalfOpenMax + 5; ++i) {
    strangers.push_back(std::make_unique<RawPeer>(pop.base(), pop.port_of("a")));
  }
  ASSERT_TRUE(pop.run_until([&] { return a().figure("popgate_peers_half_open_refused") == 5; }));
  ASSERT_TRUE(pop.run_until([&] {
    return std::all_of(strangers.begin(), strangers.end(), [](const auto& stranger) { return stranger->is_closed(); });
  }));
  RawPeer peer(pop.base(), pop.port_of("a"));
  peer.send(hello_as("b"));
  ASSERT_TRUE(pop.run_until([&] { return peer.heard_first<wire::Hello>() != nullptr; }));
}

TEST_F(MeshFaultTest, anything_but_loopback_is_refused_at_start_with_the_reason) {
  Mitigations set({"a", 1}, [](const Mitigation&, const Origin&) {});
  MeshOptions options = pop.options_of("a");
  options.listen.host = "0.0.0.0";
  EXPECT_THAT(pop.start_mesh(options, set).error(), HasSubstr("without mesh.tls"));
  options = pop.options_of("a");
  options.peers[0].address.host = "192.0.2.1";
  EXPECT_THAT(pop.start_mesh(options, set).error(), HasSubstr("without mesh.tls"));
}

TEST_F(MeshFaultTest, a_member_named_twice_and_a_port_in_use_are_refused_at_start) {
  pop.start("a");
  Mitigations set({"a", 1}, [](const Mitigation&, const Origin&) {});
  EXPECT_THAT(pop.start_mesh(pop.options_of("a"), set).error(), HasSubstr("cannot listen on 127.0.0.1:"));
  MeshOptions options = pop.options_of("b");
  options.peers.push_back(options.peers[0]);
  EXPECT_THAT(pop.start_mesh(options, set).error(), HasSubstr("twice"));
}

}  // namespace
}  // namespace popgate
