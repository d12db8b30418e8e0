// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_enforce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl_fields.h"
#include "daemon/ctl_views.h"

namespace popgate {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kUnwritten[] = "not written to state_dir";
constexpr char kUntold[] = "has not heard a peer since it started";

class CtlEnforceTest : public testing::Test {
 protected:
  [[nodiscard]] std::string view() const { return enforce_view(Fields(answer_), context_); }

  const ViewContext context_{PopInstant(std::chrono::seconds(1'000'000'000)), "popgatectl --socket /s", 0};
  json answer_ = {{"blocking", false},
                  {"any_off", true},
                  {"written", true},
                  {"orders",
                   {{{"scope", "pop"},
                     {"rule", nullptr},
                     {"off", true},
                     {"origin", "operator"},
                     {"ordered_by", "fra-1"},
                     {"ordered_at", "2001-09-09T01:40:52.000Z"},
                     {"reason", "too many calls"},
                     {"told", true}}}},
                  {"peers", {{{"node", "fra-2"}, {"heard", true}, {"equal", true}}}}};
};

TEST_F(CtlEnforceTest, what_is_off_is_said_first_and_who_ordered_it) {
  EXPECT_TRUE(view().starts_with("BLOCKING IS OFF"));
  EXPECT_THAT(view(), HasSubstr("too many calls"));
  EXPECT_THAT(view(), HasSubstr("All 1 peers know the PoP's orders.\n"));
  EXPECT_THAT(view(), Not(HasSubstr(kUnwritten)));
  EXPECT_THAT(view(), Not(HasSubstr(kUntold)));
}

TEST_F(CtlEnforceTest, what_is_not_on_disk_or_was_told_to_nobody_is_said) {
  answer_["written"] = false;
  answer_["orders"][0]["told"] = false;
  EXPECT_THAT(view(), HasSubstr(kUnwritten));
  EXPECT_THAT(view(), HasSubstr(kUntold));
}

TEST_F(CtlEnforceTest, a_daemon_that_does_not_say_whether_it_told_has_told) {
  answer_["orders"][0].erase("told");
  EXPECT_THAT(view(), Not(HasSubstr(kUntold)));
}

}  // namespace
}  // namespace popgate
