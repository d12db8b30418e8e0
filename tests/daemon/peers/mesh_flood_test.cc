// SPDX-License-Identifier: Apache-2.0
// Whoever reaches mesh.listen, or answers at a peer's address, cannot fill the disk with log lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/daemon/counted_log.h"
#include "tests/daemon/peers/peer_messages.h"
#include "tests/daemon/peers/pop_of_meshes.h"
#include "tests/daemon/peers/raw_peer.h"
#include "tests/daemon/peers/tls_pop.h"

namespace popgate {
namespace {

constexpr std::size_t kAttempts = 60;
constexpr char kStranger[] = "before it was admitted";

/// So many connections, each of which says this and is cut.
void flood(PopOfMeshes& pop, const std::string& bytes) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (std::size_t i = 0; i < kAttempts; ++i) {
    peers.push_back(std::make_unique<RawPeer>(pop.base(), pop.port_of("a")));
    peers.back()->send_bytes(bytes);
  }
  ASSERT_TRUE(pop.run_until([&] { return std::ranges::all_of(peers, [](const auto& p) { return p->is_closed(); }); }));
}

TEST(MeshFlood, rubbish_frames_of_strangers_make_a_bounded_number_of_lines) {
  PopOfMeshes pop({"a", "b"});
  pop.start("a");
  const CountedLog log;
  flood(pop, frame_of("\xff\xff rubbish"));
  flood(pop, frame_of(wire::encode(hello_as("nobody"))));
  EXPECT_GE(log.lines_with(kStranger), 1U);
  EXPECT_LE(log.lines_with(kStranger), LogLimiter::kLinesInAMinuteMax);
  EXPECT_LE(log.lines(), 2 * LogLimiter::kLinesInAMinuteMax) << "the peer that is not there adds its own";
}

TEST(MeshFlood, refused_tls_makes_a_bounded_number_of_lines) {
  TlsPop pop({"a", "b"});
  pop.start("a");
  const CountedLog log;
  flood(pop, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_GE(pop.node("a").figure("popgate_peers_tls_failures", "plain_text"), kAttempts / 2);
  EXPECT_GE(log.lines_with(kStranger), 1U);
  EXPECT_LE(log.lines_with(kStranger), LogLimiter::kLinesInAMinuteMax);
  EXPECT_LE(log.lines(), 2 * LogLimiter::kLinesInAMinuteMax);
}

TEST(MeshFlood, an_admitted_peer_that_comes_and_goes_makes_a_bounded_number_of_lines) {
  PopOfMeshes pop({"a", "b"});
  pop.start("a");
  const CountedLog log;
  for (std::uint64_t i = 0; i < 40; ++i) {
    RawPeer peer(pop.base(), pop.port_of("a"));
    peer.send(hello_as("b", 1000));
    ASSERT_TRUE(pop.run_until([&] { return pop.node("a").peer("b").heard; }));
    peer.send(wire::Goodbye{});
    ASSERT_TRUE(pop.run_until([&] { return peer.is_closed(); }));
  }
  EXPECT_GE(log.lines_with("no longer heard"), 1U);
  EXPECT_LE(log.lines_with("no longer heard"), LogLimiter::kLinesInAMinuteMax);
}

TEST(MeshFlood, what_answers_at_a_peers_address_makes_a_bounded_number_of_lines) {
  PopOfMeshes pop({"a", "b"});
  TcpRelay& wire = pop.relay("a", "b");
  pop.start_all();
  const CountedLog log;
  for (std::uint64_t rounds = 1; rounds <= 8; ++rounds) {
    ASSERT_TRUE(pop.run_until([&] { return pop.node("a").peer("b").up_to_date; }));
    wire.set_mode(TcpRelay::Mode::kCut);
    ASSERT_TRUE(pop.run_until([&] { return !pop.node("a").peer("b").up_to_date; }));
    wire.set_mode(TcpRelay::Mode::kPass);
  }
  EXPECT_GE(pop.node("a").peer("b").losses, 8U);
  EXPECT_GE(log.lines_with("peer b at"), 1U);
  EXPECT_LE(log.lines_with("peer b at"), LogLimiter::kLinesInAMinuteMax);
}

}  // namespace
}  // namespace popgate
