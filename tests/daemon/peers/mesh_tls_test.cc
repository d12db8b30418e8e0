// SPDX-License-Identifier: Apache-2.0
// A mesh under TLS does what a plain one does, and nobody without a certificate gets in its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/peers/tls_pop.h"

namespace popgate {
namespace {

using ::testing::HasSubstr;

TEST(MeshTls, decisions_and_lifts_spread_over_a_pop_of_three) {
  TlsPop pop({"a", "b", "c"});
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  pop.node("a").decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return pop.node("b").blocks(kClient) && pop.node("c").blocks(kClient); }));
  pop.node("b").lift(kClient);
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").blocks(kClient) && !pop.node("c").blocks(kClient); }));
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_handshakes"), 4) << "two dialled, two accepted";
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures"), 0);
}

TEST(MeshTls, a_large_snapshot_arrives_whole) {
  TlsPop pop({"a", "b"});
  pop.start("a");
  for (std::uint64_t i = 0; i < 20'000; ++i) pop.node("a").decide({i * 0x9e3779b97f4a7c15, i});
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.node("b").set->digest() == pop.node("a").set->digest(); }));
  EXPECT_EQ(pop.node("a").peer("b").connects, 1U);
}

TEST(MeshTls, a_goodbye_arrives_before_the_end) {
  TlsPop pop({"a", "b"});
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  pop.node("b").mesh->stop();
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").peer("b").said_goodbye; }));
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").last_error.empty(); }));
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures", "rubbish"), 0);
}

TEST(MeshTls, a_killed_peer_is_gone_and_comes_back) {
  TlsPop pop({"a", "b"});
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  pop.kill("b");
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").heard; }));
  pop.node("a").decide(kClient);
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.settled() && pop.node("b").blocks(kClient); }));
}

TEST(MeshTls, a_peer_that_is_not_there_is_told_as_such) {
  TlsPop pop({"a", "b"});
  pop.start("a");
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").last_error.empty(); }));
  EXPECT_EQ(pop.node("a").peer("b").last_error, "Connection refused");
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures"), 0) << "nobody was refused";
}

TEST(MeshTls, a_link_that_stalls_within_the_handshake_is_given_up_in_time) {
  TlsPop pop({"a", "b"});
  TcpRelay& wire = pop.relay("a", "b");
  wire.set_mode(TcpRelay::Mode::kStall);
  pop.start_all([](MeshOptions& options) { options.timings.hello_timeout = milliseconds(100); });
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").peer("b").losses >= 2; }));
  EXPECT_THAT(pop.node("a").peer("b").last_error, HasSubstr("in time"));
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
}

// More than there is room for, from one address, again and again; the peers come from the same address, which is the
// worst case.
TEST(MeshTls, silent_handshakes_do_not_keep_a_peer_out) {
  TlsPop pop({"a", "b"});
  pop.start("a");
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (std::size_t i = 0; i < 3 * kHalfOpenMax; ++i) {
    silent.push_back(std::make_unique<RawPeer>(pop.base(), pop.port_of("a")));
  }
  ASSERT_TRUE(
      pop.run_until([&] { return pop.node("a").figure("popgate_peers_half_open_refused") >= 2 * kHalfOpenMax; }));
  const HostInstant begun = HostClock::now();
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  EXPECT_GE(pop.node("a").figure("popgate_peers_tls_failures", "unfinished"), 2 * kHalfOpenMax);
  EXPECT_LT(HostClock::now() - begun, pop.options_of("a").timings.hello_timeout) << "it did not have to wait for them";
}

TEST(MeshTls, a_recorded_session_that_is_played_again_changes_nothing) {
  TlsPop pop({"a", "b"});
  TcpRelay& wire = pop.relay("b", "a");
  wire.record();
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  pop.node("b").decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").blocks(kClient); }));
  ASSERT_GT(wire.recorded().size(), 1000U);
  pop.node("b").lift(kClient);
  ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").blocks(kClient); }));
  const Digest before = pop.node("a").set->digest();
  RawPeer again(pop.base(), pop.port_of("a"));
  again.send_bytes(wire.recorded());
  ASSERT_TRUE(pop.run_until([&] { return again.is_closed(); }));
  EXPECT_EQ(pop.node("a").set->digest(), before);
  EXPECT_TRUE(pop.node("a").peer("b").heard) << "and disturbs nobody";
  EXPECT_EQ(pop.node("a").figure("popgate_peers_tls_failures", "rubbish"), 1);
}

TEST(MeshTls, bytes_changed_on_the_way_end_the_connection_and_change_nothing) {
  TlsPop pop({"a", "b"});
  TcpRelay& wire = pop.relay("b", "a");
  pop.start_all();
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  wire.set_mode(TcpRelay::Mode::kFlip);
  pop.node("b").decide(kClient);
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").figure("popgate_peers_tls_failures", "rubbish") >= 1; }));
  EXPECT_FALSE(pop.node("a").blocks(kClient));
  wire.set_mode(TcpRelay::Mode::kPass);
  ASSERT_TRUE(pop.run_until([&] { return pop.node("a").blocks(kClient); }));
}

}  // namespace
}  // namespace popgate
