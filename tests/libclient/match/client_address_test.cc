// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/client_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/libclient/match/compiled_rules.h"

namespace popgate {
namespace {

std::string text_of(const ClientAddress& address) {
  if (address.bytes == 0) return "unknown";
  char text[INET6_ADDRSTRLEN];
  return inet_ntop(address.bytes == 4 ? AF_INET : AF_INET6, address.octets, text, sizeof text);
}

std::string parsed(std::string_view text) {
  ClientAddress address;
  return parse_address(text, address) ? text_of(address) : "refused";
}

TEST(ClientAddress, reads_ipv4_and_ipv6) {
  EXPECT_EQ(parsed("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(parsed("2001:DB8:0:0::1"), "2001:db8::1");
  EXPECT_EQ(parsed("::"), "::");
}

TEST(ClientAddress, port_brackets_and_zone_are_cut_off) {
  EXPECT_EQ(parsed("192.0.2.1:65535"), "192.0.2.1");
  EXPECT_EQ(parsed("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(parsed("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(parsed("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(parsed("[fe80::1%eth0]:80"), "fe80::1");
}

TEST(ClientAddress, a_mapped_ipv4_address_is_the_ipv4_address) {
  EXPECT_EQ(parsed("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(parsed("[::FFFF:c000:201]:1"), "192.0.2.1");
}

TEST(ClientAddress, anything_else_is_refused) {
  for (const char* text : {"",
                           " ",
                           "192.0.2",
                           "192.0.2.256",
                           "192.0.2.01",
                           "192.0.2.1 ",
                           "192.0.2.1:",
                           "192.0.2.1:65536",
                           "192.0.2.1:x",
                           "0x7f.1",
                           "2001:db8:::1",
                           "[192.0.2.1]",
                           "[::1",
                           "::1]",
                           "[::1]x",
                           "[::1]:",
                           "fe80::1%",
                           "1.2.3.4%eth0",
                           "1:2:3:4:5:6:7:8:9",
                           "unknown",
                           "_hidden",
                           "::1%eth0:80]",
                           "[]",
                           "[]:80"}) {
    EXPECT_EQ(parsed(text), "refused") << text;
  }
  EXPECT_EQ(parsed(std::string_view("1.2.3.4\0", 8)), "refused");
  EXPECT_EQ(parsed(std::string(1000, '1')), "refused");
}

TEST(ClientAddress, bits_after_the_prefix_are_cleared) {
  ClientAddress address = address_of("192.0.2.255");
  clear_after_prefix(address, 25);
  EXPECT_EQ(text_of(address), "192.0.2.128");
  clear_after_prefix(address, 0);
  EXPECT_EQ(text_of(address), "0.0.0.0");
  address = address_of("2001:db8:ffff:ffff:ffff::1");
  clear_after_prefix(address, 52);
  EXPECT_EQ(text_of(address), "2001:db8:ffff:f000::");
  clear_after_prefix(address, 128);
  EXPECT_EQ(text_of(address), "2001:db8:ffff:f000::");
}

class Forwarding : public testing::Test {
 protected:
  std::string client(std::string_view peer, std::string_view forwarded_for) const {
    ClientAddress address;
    return client_behind_proxies(rules.view(), {peer, forwarded_for}, address) ? text_of(address) : "refused";
  }
  // 10.0.0.0/8, 192.0.2.128/25 and 2001:db8::/33.
  const CompiledRules rules{
      {}, {{address_of("10.0.0.0"), 8}, {address_of("192.0.2.128"), 25}, {address_of("2001:db8::"), 33}}};
};

TEST_F(Forwarding, a_peer_that_is_no_proxy_is_the_client_whatever_it_claims) {
  EXPECT_EQ(client("198.51.100.7", "1.1.1.1"), "198.51.100.7");
  EXPECT_EQ(client("192.0.2.127", "1.1.1.1"), "192.0.2.127");
  EXPECT_EQ(client("2001:db8:8000::1", "1.1.1.1"), "2001:db8:8000::1");
}

TEST_F(Forwarding, behind_a_proxy_the_right_most_foreign_hop_is_the_client) {
  EXPECT_EQ(client("10.1.2.3", "198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(client("10.1.2.3:4711", "6.6.6.6, 198.51.100.7,10.9.9.9"), "198.51.100.7");
  EXPECT_EQ(client("192.0.2.128", "198.51.100.7:8080"), "198.51.100.7");
  EXPECT_EQ(client("::ffff:10.0.0.1", "198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(client("2001:db8:7fff::1", " [2001:db8:8000::9]:1 "), "2001:db8:8000::9");
}

TEST_F(Forwarding, when_every_hop_is_trusted_the_left_most_is_the_client) {
  EXPECT_EQ(client("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3");
  EXPECT_EQ(client("10.0.0.1", ""), "10.0.0.1");
}

TEST_F(Forwarding, an_unreadable_element_ends_the_walk_at_the_last_trusted_hop) {
  EXPECT_EQ(client("10.0.0.1", "6.6.6.6, unknown, 10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(client("10.0.0.1", "6.6.6.6,,10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(client("10.0.0.1", "rubbish"), "10.0.0.1");
}

TEST_F(Forwarding, an_unreadable_peer_is_refused) {
  EXPECT_EQ(client("unix:", "198.51.100.7"), "refused");
  EXPECT_EQ(client("", ""), "refused");
}

TEST_F(Forwarding, at_most_32_hops_are_walked) {
  std::string list = "198.51.100.7";
  for (std::size_t i = 0; i < kForwardedHopsMax; ++i) list += ", 10.0.0." + std::to_string(i);
  EXPECT_EQ(client("10.0.0.1", list), "10.0.0.0");
}

TEST_F(Forwarding, without_rules_no_proxy_is_trusted) {
  ClientAddress address;
  ASSERT_TRUE(client_behind_proxies(RulesView(), {"10.0.0.1", "1.1.1.1"}, address));
  EXPECT_EQ(text_of(address), "10.0.0.1");
}

}  // namespace
}  // namespace popgate
