// SPDX-License-Identifier: Apache-2.0
// Daemons of other releases, and what is said again or cut short.
#include <gtest/gtest.h>

#include <memory>
#include <ostream>

#include "tests/daemon/peers/peer_messages.h"
#include "tests/daemon/peers/pop_of_meshes.h"
#include "tests/daemon/peers/raw_peer.h"

namespace popgate {
namespace {

/// A field that no release has: number 1000, length-delimited, three bytes. Protobuf's tag is number << 3 | 2.
const std::string kUnknownField("\xc2\x3e\x03xyz", 6);

class MeshCompatibilityTest : public ::testing::Test {
 protected:
  MeshCompatibilityTest() { pop.start("a"); }
  MeshNode& a() { return pop.node("a"); }
  std::unique_ptr<RawPeer> dial() { return std::make_unique<RawPeer>(pop.base(), pop.port_of("a")); }

  PopOfMeshes pop{{"a", "b"}};
};

TEST_F(MeshCompatibilityTest, an_envelope_of_an_unknown_kind_is_skipped_before_and_after_the_hello) {
  const auto peer = dial();
  peer->send_bytes(frame_of(kUnknownField));
  peer->send(hello_as("b"));
  peer->send_bytes(frame_of(kUnknownField));
  peer->send(entry_of(1, kClient));
  ASSERT_TRUE(pop.run_until([&] { return a().blocks(kClient); }));
  EXPECT_FALSE(peer->is_closed());
}

// A message within the envelope is length-delimited: its first two bytes are tag and length, as long as it is short.
std::string with_unknown_field_inside(const wire::Message& message) {
  std::string bytes = wire::encode(message);
  EXPECT_LT(bytes.size() + kUnknownField.size(), 128U) << "the length is one byte";
  bytes[1] = static_cast<char>(bytes[1] + static_cast<char>(kUnknownField.size()));
  return bytes + kUnknownField;
}

TEST_F(MeshCompatibilityTest, unknown_fields_of_known_kinds_are_skipped) {
  const auto peer = dial();
  peer->send_bytes(frame_of(with_unknown_field_inside(hello_as("b"))));
  peer->send_bytes(frame_of(with_unknown_field_inside(entry_of(1, kClient))));
  ASSERT_TRUE(pop.run_until([&] { return a().blocks(kClient); }));
  EXPECT_EQ(a().peer("b").rubbish_cuts, 0U);
}

TEST_F(MeshCompatibilityTest, the_highest_common_version_is_spoken) {
  wire::Hello hello = hello_as("b");
  hello.version_max = 9;
  const auto peer = dial();
  peer->send(hello);
  peer->send(entry_of(1, kClient));
  ASSERT_TRUE(pop.run_until([&] { return a().blocks(kClient); }));
}

TEST_F(MeshCompatibilityTest, without_a_common_version_both_ranges_are_named) {
  wire::Hello hello = hello_as("b");
  hello.version_min = 7;
  hello.version_max = 9;
  const auto peer = dial();
  peer->send(hello);
  ASSERT_TRUE(pop.run_until([&] { return peer->is_closed(); }));
  ASSERT_NE(peer->heard_first<wire::Refused>(), nullptr);
  EXPECT_EQ(peer->heard_first<wire::Refused>()->reason, "no common version: found 7 to 9, allowed: 1");
  EXPECT_EQ(a().figure("popgate_peers_hellos_refused"), 1);
}

TEST_F(MeshCompatibilityTest, a_session_that_is_played_again_undoes_no_lift_and_lengthens_nothing) {
  std::string session = frame_of(wire::encode(hello_as("b")));
  session += frame_of(wire::encode(entry_of(1, kClient)));
  session += frame_of(wire::encode(entry_of(2, {2, 2})));
  auto peer = dial();
  peer->send_bytes(session);
  ASSERT_TRUE(pop.run_until([&] { return a().blocks({2, 2}); }));
  const HostInstant end = a().set->enforcement({2, 2}, a().now())->until;
  a().lift(kClient);
  const Digest before = a().set->digest();
  peer = dial();
  peer->send_bytes(session);
  ASSERT_TRUE(pop.run_until([&] {
    const auto* ack = peer->heard().empty() ? nullptr : std::get_if<wire::Ack>(&peer->heard().back());
    return ack != nullptr && ack->sequence == 2;
  }));
  EXPECT_EQ(a().set->digest(), before);
  EXPECT_FALSE(a().blocks(kClient));
  EXPECT_EQ(a().set->enforcement({2, 2}, a().now())->until, end);
}

struct Bad {
  const char* name;
  std::string frame;
};

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

class MeshBadFrameTest : public MeshCompatibilityTest, public ::testing::WithParamInterface<Bad> {};

TEST_P(MeshBadFrameTest, is_cut_counted_and_disturbs_nobody) {
  pop.start("b");
  ASSERT_TRUE(pop.run_until([&] { return pop.settled(); }));
  const auto stranger = dial();
  stranger->send_bytes(GetParam().frame);
  ASSERT_TRUE(pop.run_until([&] { return stranger->is_closed(); }));
  EXPECT_EQ(a().figure("popgate_peers_accepted_rubbish_cuts"), 1);
  EXPECT_EQ(a().peer("b").connects, 1U);
  pop.node("b").decide(kClient);
  EXPECT_TRUE(pop.run_until([&] { return a().blocks(kClient); }));
}

std::string cut_short() {
  std::string payload = wire::encode(entry_of(1, kClient));
  payload.resize(payload.size() - 3);
  return frame_of(payload);
}

INSTANTIATE_TEST_SUITE_P(Mesh, MeshBadFrameTest,
                         ::testing::Values(Bad{"oversized", std::string("\x00\x01\x00\x01", 4)},
                                           Bad{"empty", std::string(4, '\0')}, Bad{"truncated_inside", cut_short()},
                                           Bad{"forged_before_a_hello", frame_of(wire::encode(entry_of(1, kClient)))}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace popgate
