// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

namespace popgate {
namespace {

using testing::HasSubstr;

class AdminRouterTest : public testing::Test {
 protected:
  AdminReply reply() {
    return AdminReply([this](AdminAnswer answer) {
      ++answers_;
      answer_ = std::move(answer);
    });
  }
  const AdminAnswer& ask(std::string_view method, std::string_view path, std::string_view query = "") {
    router_.dispatch({method, path, query, "body"}, reply());
    return answer_;
  }

  AdminRouter router_;
  AdminAnswer answer_;
  int answers_ = 0;
};

TEST_F(AdminRouterTest, handler_of_method_and_path_is_called) {
  router_.route("GET", "/a", [](const AdminRequest&, AdminReply to) { to.json(200, "got"); });
  router_.route("POST", "/a", [](const AdminRequest& request, AdminReply to) { to.plain(200, request.body); });
  EXPECT_EQ(ask("GET", "/a").text, "got");
  EXPECT_EQ(answer_.content_type, "application/json");
  EXPECT_EQ(ask("POST", "/a").text, "body");
  EXPECT_EQ(answer_.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(answers_, 2);
}

TEST_F(AdminRouterTest, paths_are_whole) {
  router_.route("GET", "/a", [](const AdminRequest&, AdminReply to) { to.json(200, ""); });
  for (const char* path : {"", "/", "/a/", "/A", "/ab"}) EXPECT_EQ(ask("GET", path).status, 404) << path;
}

TEST_F(AdminRouterTest, method_not_allowed_names_those_that_are) {
  router_.route("GET", "/a", [](const AdminRequest&, AdminReply to) { to.json(200, ""); });
  router_.route("POST", "/a", [](const AdminRequest&, AdminReply to) { to.json(200, ""); });
  EXPECT_EQ(ask("PUT", "/a").status, 405);
  EXPECT_EQ(answer_.allow, "GET, POST");
}

TEST_F(AdminRouterTest, error_with_bytes_that_are_no_text_is_still_json) {
  EXPECT_THAT(ask("GET", "/\xff\"\n").text, HasSubstr("\\\"\\n"));
  EXPECT_EQ(answer_.status, 404);
}

TEST_F(AdminRouterTest, handler_that_throws_before_or_after_it_answered_answers_once) {
  router_.route("GET", "/before", [](const AdminRequest&, AdminReply) { throw std::runtime_error("x"); });
  router_.route("GET", "/after", [](const AdminRequest&, AdminReply to) {
    to.json(200, "{}");
    throw std::runtime_error("x");
  });
  EXPECT_EQ(ask("GET", "/before").status, 500);
  EXPECT_EQ(ask("GET", "/after").status, 200);
  EXPECT_EQ(answers_, 2);
}

TEST_F(AdminRouterTest, last_copy_that_is_dropped_answers_500) {
  std::optional<AdminReply> kept = reply();
  std::optional<AdminReply> copy = kept;
  kept.reset();
  EXPECT_EQ(answers_, 0);
  copy.reset();
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(answer_.status, 500);
}

TEST_F(AdminRouterTest, second_answer_is_a_bug) {
  AdminReply first = reply();
  AdminReply copy = first;
  first.json(200, "");
  EXPECT_DEATH(copy.json(200, ""), "assertion failed");
}

TEST_F(AdminRouterTest, second_handler_of_one_route_is_a_bug) {
  router_.route("GET", "/a", nullptr);
  EXPECT_DEATH(router_.route("GET", "/a", nullptr), "assertion failed");
}

}  // namespace
}  // namespace popgate
