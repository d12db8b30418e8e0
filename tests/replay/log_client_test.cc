// SPDX-License-Identifier: Apache-2.0
#include "replay/log_client.h"

#include <gtest/gtest.h>

#include <cstring>

namespace popgate {
namespace {

TEST(LogClient, port_brackets_and_zone_are_taken_off) {
  EXPECT_EQ(bare_client("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(bare_client("192.0.2.1:58444"), "192.0.2.1");
  EXPECT_EQ(bare_client("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(bare_client("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(bare_client("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(bare_client("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(bare_client("[fe80::1%eth0]:80"), "fe80::1");
  EXPECT_EQ(bare_client("client.example.net"), "client.example.net");
  EXPECT_EQ(bare_client("client.example.net:8080"), "client.example.net");
}

TEST(LogClient, port_behind_a_bare_ipv6_address_is_taken_off_where_it_cannot_be_part_of_it) {
  EXPECT_EQ(bare_client("2001:db8::46fa:58430"), "2001:db8::46fa");      // five digits are no group
  EXPECT_EQ(bare_client("::ffff:192.0.2.1:58430"), "::ffff:192.0.2.1");  // nothing follows a dotted end
  EXPECT_EQ(bare_client("2001:db8:0:0:0:0:0:1:443"), "2001:db8:0:0:0:0:0:1");
  EXPECT_EQ(bare_client("2001:db8::1:443"), "2001:db8::1:443");  // an address as it stands
}

TEST(LogClient, mapped_ipv4_is_the_ipv4_client) {
  ClientAddress mapped;
  ClientAddress plain;
  ASSERT_TRUE(is_address("::ffff:192.0.2.1", &mapped));
  ASSERT_TRUE(is_address("192.0.2.1", &plain));
  EXPECT_EQ(mapped.bytes, 4);
  EXPECT_EQ(std::memcmp(mapped.octets, plain.octets, 4), 0);
}

TEST(LogClient, numbers_and_words_are_no_addresses) {
  for (const char* text :
       {"", "1", "15", "1.2.3", "1.2.3.4.5", "256.1.1.1", "-", "Sep", "localhost", "::1::", "[::1]"}) {
    EXPECT_FALSE(is_address(text)) << text;
  }
}

TEST(LogClient, host_names_get_addresses_of_their_own_whatever_their_case) {
  const ClientAddress one = client_address_of("one.example.net");
  const ClientAddress same = client_address_of("ONE.example.net");
  const ClientAddress other = client_address_of("two.example.net");
  EXPECT_EQ(one.bytes, 16);
  EXPECT_EQ(one.octets[0], 0xfd);
  EXPECT_EQ(std::memcmp(one.octets, same.octets, 16), 0);
  EXPECT_NE(std::memcmp(one.octets, other.octets, 8), 0) << "they must not share a /64";
}

TEST(LogClient, text_that_no_client_could_have_is_refused) {
  EXPECT_TRUE(is_client_text("host_name-1.example"));
  EXPECT_TRUE(is_client_text("[2001:db8::1%eth0]:80"));
  EXPECT_FALSE(is_client_text("-"));
  EXPECT_FALSE(is_client_text("2015/01/21"));
  EXPECT_FALSE(is_client_text("a b"));
  EXPECT_FALSE(is_client_text("\x16\x03"));
}

}  // namespace
}  // namespace popgate
