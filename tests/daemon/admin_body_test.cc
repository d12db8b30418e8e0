// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_body.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace popgate {
namespace {

TEST(AdminBody, is_one_json_value) {
  EXPECT_EQ((*parse_admin_body(R"({"a": [1, {"b": "c"}], "b": 2})"))["a"][1]["b"], "c");
  for (const char* text : {"", "{", "{}{}", "{\"a\": }", "no"})
    EXPECT_EQ(parse_admin_body(text).error(), "body: found no JSON, allowed: a JSON object") << text;
}

TEST(AdminBody, a_field_that_comes_twice_in_one_object_is_refused_by_name) {
  EXPECT_EQ(parse_admin_body(R"({"key": "a", "for_ms": 1, "key": "b"})").error(),
            "body: found the field \"key\" twice, allowed: once");
  EXPECT_EQ(parse_admin_body(R"({"a": {"x": 1, "\u0078": 2}})").error(),
            "body: found the field \"x\" twice, allowed: once")
      << "however it is written";
  EXPECT_TRUE(parse_admin_body(R"([{"x": 1}, {"x": 2}, {"y": {"x": 3}}])").ok());
}

TEST(AdminBody, deep_nesting_is_refused) {
  EXPECT_TRUE(parse_admin_body(std::string(10, '[') + std::string(10, ']')).ok());
  EXPECT_FALSE(parse_admin_body(std::string(30'000, '[') + std::string(30'000, ']')).ok());
}

}  // namespace
}  // namespace popgate
