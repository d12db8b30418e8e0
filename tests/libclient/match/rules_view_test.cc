// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/rules_view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>

#include "tests/libclient/match/compiled_rules.h"

namespace popgate {
namespace {

std::vector<Rule> some_rules() {
  Rule login = on_path(on_host(rule_named("login"), "example.com"), PathMatch::kExact, "/login");
  login.match.methods = {"POST", "PUT"};
  login.limit = 5;
  login.cost = 2;
  login.action = Action::kLog;
  Rule api = on_path(on_host(rule_named("api"), "*.example.com"), PathMatch::kGlob, "/api/*/x/**/y");
  api.key = {{KeyPart::kHeader, "x-api-key"}, {KeyPart::kCookie, "session"}, {KeyPart::kHost}};
  api.count = CountMode::kAll;
  Rule off = rule_named("off");
  off.enabled = false;
  return {login, api, off, on_path(rule_named("any"), PathMatch::kPrefix, "/x")};
}

TEST(RulesView, tells_the_facts_of_enabled_rules) {
  const CompiledRules rules(some_rules());
  ASSERT_TRUE(rules.opened()) << rules.reason();
  const RuleFacts login = rules.view().facts(0);
  EXPECT_TRUE(login.exists);
  EXPECT_EQ(login.name, "login");
  EXPECT_EQ(login.limit, 5U);
  EXPECT_EQ(login.window_us, 60'000'000U);
  EXPECT_EQ(login.cost, 2U);
  EXPECT_FALSE(login.blocks);
  EXPECT_FALSE(login.counts_all);
  EXPECT_TRUE(rules.view().facts(1).blocks);
  EXPECT_TRUE(rules.view().facts(1).counts_all);
  EXPECT_FALSE(rules.view().facts(2).exists) << "disabled";
  EXPECT_EQ(rules.view().facts(3).name, "any");
  EXPECT_FALSE(rules.view().facts(4).exists);
  EXPECT_FALSE(rules.view().facts(UINT32_MAX).exists);
  EXPECT_EQ(rules.view().rule_count(), 3U);
  EXPECT_EQ(rules.view().revision(), rules.set().revision());
  EXPECT_EQ(rules.view().secret(), test_secret());
}

TEST(RulesView, finds_rules_by_name) {
  const CompiledRules rules(some_rules());
  ASSERT_NE(rules.view().find("api"), nullptr);
  EXPECT_EQ(rules.view().find("api")->number, 1U);
  EXPECT_EQ(rules.view().find("off"), nullptr);
  EXPECT_EQ(rules.view().find(""), nullptr);
}

TEST(RulesView, sparse_rule_numbers_are_found) {
  Rule rule = rule_named("far");
  rule.number = kRuleNumbersMax - 1;
  identify(rule);
  const std::vector<std::byte> bytes = compile_rules(RuleSet({rule}), test_secret(), {});
  RulesView view;
  const char* reason = nullptr;
  ASSERT_TRUE(view.open(bytes, reason)) << reason;
  EXPECT_EQ(view.facts(kRuleNumbersMax - 1).name, "far");
  EXPECT_FALSE(view.facts(0).exists);
}

TEST(RulesView, no_rules_are_rules_too) {
  const CompiledRules rules({});
  ASSERT_TRUE(rules.opened()) << rules.reason();
  EXPECT_FALSE(rules.view().empty());
  EXPECT_TRUE(rules.names(TestRequest{}.view()).empty());
}

TEST(RulesView, a_view_that_was_never_opened_is_empty_and_matches_nothing) {
  const RulesView view;
  EXPECT_TRUE(view.empty());
  EXPECT_FALSE(view.facts(0).exists);
  EXPECT_EQ(view.find("x"), nullptr);
  Matches matches;
  match(view, TestRequest{}.view(), matches);
  EXPECT_EQ(matches.count, 0U);
}

TEST(RulesView, every_shorter_block_is_refused_and_leaves_the_view_empty) {
  const CompiledRules rules(some_rules());
  for (std::size_t bytes = 0; bytes < rules.bytes().size(); ++bytes) {
    RulesView view;
    const char* reason = nullptr;
    EXPECT_FALSE(view.open(std::span(rules.bytes()).first(bytes), reason)) << bytes;
    EXPECT_NE(reason, nullptr);
    EXPECT_TRUE(view.empty());
  }
}

TEST(RulesView, a_foreign_version_or_magic_or_an_odd_address_is_refused) {
  const CompiledRules rules(some_rules());
  RulesView view;
  const char* reason = nullptr;
  std::vector<std::byte> bytes = rules.bytes();
  bytes[offsetof(RulesHeader, version)] = std::byte{99};
  EXPECT_FALSE(view.open(bytes, reason));
  EXPECT_STREQ(reason, "a block of rules of another version");
  bytes = rules.bytes();
  bytes[0] = std::byte{0};
  EXPECT_FALSE(view.open(bytes, reason));
  EXPECT_STREQ(reason, "not a block of rules");
  bytes.assign(rules.bytes().size() + 1, std::byte{0});
  std::memcpy(bytes.data() + 1, rules.bytes().data(), rules.bytes().size());
  EXPECT_FALSE(view.open(std::span(bytes).subspan(1), reason));
  EXPECT_STREQ(reason, "the block is not aligned");
}

/// Uses everything a view offers; whatever it answers, it must stay inside the block (the address sanitizer watches).
void use_all_of(const RulesView& view) {
  TestRequest request;
  request.headers = {{"x-api-key", "k"}, {"cookie", "session=1"}};
  for (const char* host : {"example.com", "a.example.com", ""}) {
    for (const char* path : {"/login", "/api/a/x/b/y", "/x", ""}) {
      request.host = host;
      request.path = path;
      Matches matches;
      match(view, request.view(), matches);
      for (std::size_t i = 0; i < matches.count; ++i) RC_ASSERT(view.facts(matches.items[i].rule).exists);
    }
  }
  Match found;
  (void)custom_key(view, "login", {}, found);
  ClientAddress client;
  (void)client_behind_proxies(view, {"10.0.0.1", "1.1.1.1"}, client);
}

// Four bytes at a time, because that is what most fields are: small and huge values, at any place.
RC_GTEST_PROP(RulesView, a_damaged_block_never_leads_outside, ()) {
  static const CompiledRules rules(some_rules(), {{address_of("10.0.0.0"), 8}});
  std::vector<std::byte> bytes = rules.bytes();
  const auto damages = *rc::gen::inRange(1, 4);
  for (int i = 0; i < damages; ++i) {
    const auto place = *rc::gen::inRange<std::size_t>(0, bytes.size() / 4) * 4;
    const std::uint32_t value = *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 64), rc::gen::just(UINT32_MAX),
                                                rc::gen::arbitrary<std::uint32_t>());
    std::memcpy(bytes.data() + place, &value, std::min(sizeof value, bytes.size() - place));
  }
  RulesView view;
  const char* reason = nullptr;
  if (view.open(bytes, reason)) use_all_of(view);
}

}  // namespace
}  // namespace popgate
