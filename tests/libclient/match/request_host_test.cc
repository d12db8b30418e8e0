// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/request_host.h"

#include <gtest/gtest.h>

#include <string>

namespace popgate {
namespace {

std::string host(std::string_view text) {
  HostBuffer buffer;
  return std::string(normal_host(text, buffer));
}

TEST(RequestHost, is_lower_case) { EXPECT_EQ(host("WWW.Example.COM"), "www.example.com"); }

TEST(RequestHost, loses_port_and_one_trailing_dot) {
  EXPECT_EQ(host("example.com:8080"), "example.com");
  EXPECT_EQ(host("example.com:"), "example.com");
  EXPECT_EQ(host("example.com."), "example.com");
  EXPECT_EQ(host("Example.com.:443"), "example.com");
  EXPECT_EQ(host("192.0.2.1:80"), "192.0.2.1");
}

TEST(RequestHost, an_ipv6_literal_keeps_its_brackets_and_loses_only_the_port) {
  EXPECT_EQ(host("[2001:DB8::1]"), "[2001:db8::1]");
  EXPECT_EQ(host("[2001:db8::1]:443"), "[2001:db8::1]");
  EXPECT_EQ(host("[::1]:"), "[::1]");
}

TEST(RequestHost, what_is_no_port_stays) {
  EXPECT_EQ(host("example.com:http"), "example.com:http");
  EXPECT_EQ(host("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(host("[::1:80"), "[::1:80");
}

TEST(RequestHost, odd_inputs_are_harmless) {
  EXPECT_EQ(host(""), "");
  EXPECT_EQ(host(":"), "");
  EXPECT_EQ(host(":80"), "");
  EXPECT_EQ(host("."), "");
  EXPECT_EQ(host("["), "[");
  EXPECT_EQ(host("]:1"), "]");
}

TEST(RequestHost, a_host_beyond_the_bound_keeps_its_end) {
  const std::string end = ".Example.com";
  const std::string kept = host(std::string(2 * kHostBytesMax, 'a') + end);
  EXPECT_EQ(kept, std::string(kHostBytesMax - end.size(), 'a') + ".example.com");
}

}  // namespace
}  // namespace popgate
