// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace popgate {
namespace {

using ::testing::HasSubstr;

class HelloTest : public ::testing::Test {
 protected:
  static MeshIdentity identity(const std::string& node) {
    MeshIdentity identity;
    identity.pop = "fra";
    identity.node = node;
    identity.incarnation = 1;
    identity.secret_id = 77;
    identity.members = {"a", "b", "c"};
    return identity;
  }
  Result<std::uint32_t> check(const MeshIdentity& theirs, std::optional<std::string_view> expected = {}) const {
    return check_hello(own, hello_of(theirs, HostInstant{}), expected);
  }

  MeshIdentity own = identity("a");
  MeshIdentity peer = identity("b");
};

TEST_F(HelloTest, a_member_with_the_same_pop_and_secret_is_answered) {
  ASSERT_TRUE(check(peer, "b"));
  EXPECT_EQ(*check(peer), kMeshVersionMax);
}

TEST_F(HelloTest, another_pop_is_refused) {
  peer.pop = "ams";
  EXPECT_EQ(check(peer).error(), "another PoP: found \"ams\", allowed: \"fra\"");
}

TEST_F(HelloTest, the_own_name_is_a_clash) {
  peer.node = "a";
  EXPECT_THAT(check(peer).error(), HasSubstr("node name clash"));
}

TEST_F(HelloTest, an_unknown_name_is_refused) {
  peer.node = "x\n";
  EXPECT_EQ(check(peer).error(), "unknown node name: found \"x?\", allowed: a member of the PoP's configuration");
}

TEST_F(HelloTest, another_member_than_the_one_configured_at_the_address_is_refused) {
  EXPECT_EQ(check(peer, "c").error(), "another node at this address: found \"b\", allowed: \"c\"");
}

TEST_F(HelloTest, another_secret_is_refused) {
  peer.secret_id = 78;
  EXPECT_EQ(
      check(peer).error(),
      "another hash secret: found 000000000000004e, allowed: 000000000000004d, the ids of this node's (popgatectl "
      "secret id FILE prints a file's)");
  peer.second_secret = wire::SecretName{79, true};
  own.second_secret = wire::SecretName{80, false};
  EXPECT_THAT(check(peer).error(), HasSubstr("found 000000000000004e or 000000000000004f, allowed: 000000000000004d or "
                                             "0000000000000050,"));
}

TEST_F(HelloTest, one_secret_in_common_is_enough_whichever_it_is) {
  peer.second_secret = wire::SecretName{78, true};
  EXPECT_TRUE(check(peer)) << "the peer has the next one already";
  own.second_secret = wire::SecretName{78, true};
  EXPECT_TRUE(check(peer));
  peer.secret_id = 78;
  peer.second_secret = wire::SecretName{77, false};
  EXPECT_TRUE(check(peer)) << "the peer counts under the next one only";
  peer.second_secret.reset();
  EXPECT_TRUE(check(peer)) << "the peer has forgotten the former one";
  own.second_secret.reset();
  EXPECT_FALSE(check(peer));
}

TEST_F(HelloTest, a_hello_of_an_earlier_release_names_one_secret) {
  wire::Hello hello = hello_of(peer, HostInstant{});
  hello.secrets.clear();
  EXPECT_TRUE(check_hello(own, hello, {}));
  EXPECT_EQ(secrets_of(hello), (std::vector<wire::SecretName>{{77, true}}));
}

TEST_F(HelloTest, two_that_count_under_no_secret_in_common_are_told_apart) {
  const auto alike = [&] { return count_alike(own, secrets_of(hello_of(peer, HostInstant{}))); };
  EXPECT_TRUE(alike());
  peer.secret_id = 78;
  peer.second_secret = wire::SecretName{77, false};
  EXPECT_FALSE(alike()) << "it no longer counts under ours";
  own.second_secret = wire::SecretName{78, true};
  EXPECT_TRUE(alike());
  own.second_secret = wire::SecretName{78, false};
  EXPECT_FALSE(alike());
}

TEST_F(HelloTest, the_highest_common_version_is_spoken_and_none_is_refused) {
  own.version_min = 2;
  own.version_max = 5;
  peer.version_min = 1;
  peer.version_max = 3;
  EXPECT_EQ(*check(peer), 3U);
  peer.version_max = 1;
  EXPECT_EQ(check(peer).error(), "no common version: found 1, allowed: 2 to 5");
  peer.version_min = 6;
  peer.version_max = 9;
  EXPECT_FALSE(check(peer));
}

}  // namespace
}  // namespace popgate
