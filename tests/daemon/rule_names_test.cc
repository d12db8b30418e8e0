// SPDX-License-Identifier: Apache-2.0
#include "daemon/rule_names.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/daemon/publish/test_folder.h"

namespace popgate {
namespace {

RuleSet rules_named(const std::vector<std::string>& names) {
  std::vector<Rule> rules;
  for (const std::string& name : names) {
    Rule& rule = rules.emplace_back();
    rule.name = name;
    rule.number = static_cast<RuleNumber>(rules.size());
    identify(rule);
  }
  return RuleSet(rules);
}

class RuleNamesTest : public testing::Test {
 protected:
  TestFolder folder_;
  std::string path_ = folder_.file("rule-names");
};

TEST_F(RuleNamesTest, a_rule_that_is_gone_is_known_after_a_restart) {
  {
    RuleNames names(path_);
    ASSERT_TRUE(names.learn(rules_named({"login", "api"})));
    ASSERT_TRUE(names.learn(rules_named({"api", "search"})));
  }
  const RuleNames again(path_);
  EXPECT_EQ(again.name_of(rule_id("login")), "login");
  EXPECT_EQ(again.name_of(rule_id("search")), "search");
  EXPECT_EQ(again.name_of(rule_id("other")), std::nullopt);
  EXPECT_EQ(again.size(), 3U);
}

TEST_F(RuleNamesTest, a_file_that_was_cut_or_filled_with_rubbish_gives_the_names_that_are_whole) {
  std::ofstream(path_, std::ios::binary) << "login\n\x01\x02 x\n" << std::string(1000, 'y') << "\napi\nsea";
  RuleNames names(path_);
  EXPECT_EQ(names.size(), 2U);
  EXPECT_EQ(names.name_of(rule_id("api")), "api");
  ASSERT_TRUE(names.learn(rules_named({"search"})));
  EXPECT_EQ(RuleNames(path_).name_of(rule_id("search")), "search") << "the cut line does not swallow it";
}

TEST_F(RuleNamesTest, a_file_that_cannot_be_written_is_an_error_and_names_are_known_all_the_same) {
  std::filesystem::create_directory(path_);
  RuleNames names(path_);
  EXPECT_FALSE(names.learn(rules_named({"login"})));
  EXPECT_EQ(names.name_of(rule_id("login")), "login");
}

}  // namespace
}  // namespace popgate
