// SPDX-License-Identifier: Apache-2.0
#include "daemon/socket_address.h"

#include <gtest/gtest.h>

#include <string>

namespace popgate {
namespace {

TEST(SocketAddress, tells_loopback_from_everything_else) {
  for (const char* host : {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"}) {
    ASSERT_TRUE(SocketAddress::resolve(host, 1)) << host;
    EXPECT_TRUE(SocketAddress::resolve(host, 1)->is_loopback()) << host;
  }
  for (const char* host : {"0.0.0.0", "10.0.0.1", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "fe80::1"}) {
    ASSERT_TRUE(SocketAddress::resolve(host, 1)) << host;
    EXPECT_FALSE(SocketAddress::resolve(host, 1)->is_loopback()) << host;
  }
}

TEST(SocketAddress, reads_as_people_write_it) {
  EXPECT_EQ(SocketAddress::resolve("127.0.0.1", 7400)->text(), "127.0.0.1:7400");
  EXPECT_EQ(SocketAddress::resolve("::1", 7400)->text(), "[::1]:7400");
  EXPECT_EQ(SocketAddress::resolve("::1", 7400)->port(), 7400);
}

TEST(SocketAddress, an_address_that_is_none_is_an_error_that_names_it) {
  const std::string name(300, 'x');  // too long for a question to any name server
  const auto address = SocketAddress::resolve(name, 1);
  EXPECT_FALSE(address);
  EXPECT_NE(address.error().find(name), std::string::npos);
}

}  // namespace
}  // namespace popgate
