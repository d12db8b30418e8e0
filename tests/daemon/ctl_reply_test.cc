// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace popgate {
namespace {

TEST(CtlReply, status_type_and_length_are_read_in_any_case) {
  const auto head = parse_reply_head(
      "HTTP/1.1 503 Service Unavailable\r\ncontent-TYPE: application/json\r\n"
      "X: y\r\nCONTENT-length:  12 ");
  ASSERT_TRUE(head.ok()) << head.error();
  EXPECT_EQ(head->status, 503);
  EXPECT_TRUE(head->json);
  EXPECT_EQ(head->body_bytes, 12U);
}

TEST(CtlReply, other_media_types_are_not_json) {
  const auto head = parse_reply_head("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0");
  ASSERT_TRUE(head.ok()) << head.error();
  EXPECT_FALSE(head->json);
}

TEST(CtlReply, what_is_no_reply_is_refused) {
  for (const char* bad : {"", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 9999 x", "HTTP/1.1 2x0 OK", "HTTP/2 200 OK",
                          "SSH-2.0-OpenSSH\r\nContent-Length: 1", "HTTP/1.1 099 x\r\nContent-Length: 1"}) {
    EXPECT_FALSE(parse_reply_head(bad).ok()) << bad;
  }
}

TEST(CtlReply, length_that_is_absent_malformed_or_absurd_is_refused) {
  const std::string line = "HTTP/1.1 200 OK\r\n";
  for (const char* bad : {"X: y", "Content-Length: ", "Content-Length: -1", "Content-Length: 1x",
                          "Content-Length: 99999999999999999999999", "Content-Length: 1073741825"}) {
    EXPECT_FALSE(parse_reply_head(line + bad).ok()) << bad;
  }
  EXPECT_TRUE(parse_reply_head(line + "Content-Length: 1073741824").ok());
}

}  // namespace
}  // namespace popgate
