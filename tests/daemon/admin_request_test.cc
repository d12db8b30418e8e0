// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<std::pair<std::string, std::string>> decoded(std::string_view query) {
  const Result<AdminRequest> request = decode_admin_request(query, "");
  EXPECT_TRUE(request.ok()) << request.error();
  return request.ok() ? request->query : std::vector<std::pair<std::string, std::string>>();
}

TEST(AdminRequest, names_and_values_come_in_order_and_repeat) {
  EXPECT_THAT(decoded("rule=login&value=1&value=2"),
              ElementsAre(Pair("rule", "login"), Pair("value", "1"), Pair("value", "2")));
  const Result<AdminRequest> request = decode_admin_request("a=1&b=2&a=3&c", "body");
  EXPECT_THAT(request->values("a"), ElementsAre("1", "3"));
  EXPECT_EQ(request->value("a"), "1");
  EXPECT_EQ(request->value("c"), "");
  EXPECT_EQ(request->value("d"), std::nullopt);
  EXPECT_EQ(request->body, "body");
}

TEST(AdminRequest, empty_parts_are_passed_over) {
  EXPECT_THAT(decoded(""), ElementsAre());
  EXPECT_THAT(decoded("&&a=1&"), ElementsAre(Pair("a", "1")));
}

TEST(AdminRequest, only_the_first_equals_sign_separates_and_plus_is_plus) {
  EXPECT_THAT(decoded("a=b=c+d"), ElementsAre(Pair("a", "b=c+d")));
  EXPECT_THAT(decoded("a%3db%26=%00%fF"), ElementsAre(Pair("a=b&", std::string("\0\xff", 2))));
}

TEST(AdminRequest, percent_without_two_digits_is_refused) {
  for (const char* bad : {"a=%", "a=%1", "a=%1g", "%zz=1", "a=1&b=%+1"}) {
    EXPECT_FALSE(decode_admin_request(bad, "").ok()) << bad;
  }
}

TEST(AdminRequest, one_part_too_many_is_refused) {
  std::string query;
  for (std::size_t i = 0; i < kAdminQueryPairsMax; ++i) query += "a=1&";
  EXPECT_EQ(decoded(query).size(), kAdminQueryPairsMax);
  const auto refused = decode_admin_request(query + "b=1", "");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error(), HasSubstr("64"));
}

RC_GTEST_PROP(AdminRequest, every_text_survives_encoding, (const std::string& text)) {
  RC_ASSERT(percent_decode(percent_encode(text)) == text);
}

TEST(AdminRequest, what_a_uri_allows_is_not_encoded) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("/ \xc3\xa9"), "%2F%20%C3%A9");
}

}  // namespace
}  // namespace popgate
