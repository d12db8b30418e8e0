// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/libclient/match/compiled_rules.h"

namespace popgate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_on_host(const CompiledRules& rules, std::string host) {
  TestRequest request;
  request.host = std::move(host);
  return rules.names(request.view());
}

std::vector<std::string> names_on_path(const CompiledRules& rules, std::string path) {
  TestRequest request;
  request.path = std::move(path);
  return rules.names(request.view());
}

TEST(Matcher, a_host_matches_exactly_and_in_any_spelling) {
  const CompiledRules rules({on_host(rule_named("one"), "example.com")});
  for (const char* host : {"example.com", "EXAMPLE.com:8080", "example.com."}) {
    EXPECT_THAT(names_on_host(rules, host), ElementsAre("one")) << host;
  }
  for (const char* host : {"www.example.com", "example.co", "xexample.com", ""}) {
    EXPECT_THAT(names_on_host(rules, host), IsEmpty()) << host;
  }
}

TEST(Matcher, a_suffix_matches_every_name_below_it_but_not_itself) {
  const CompiledRules rules({on_host(rule_named("below"), "*.example.com"), on_host(rule_named("com"), "*.com")});
  EXPECT_THAT(names_on_host(rules, "a.example.com"), ElementsAre("below", "com"));
  EXPECT_THAT(names_on_host(rules, "a.b.c.Example.COM:80"), ElementsAre("below", "com"));
  EXPECT_THAT(names_on_host(rules, "example.com"), ElementsAre("com"));
  EXPECT_THAT(names_on_host(rules, "aexample.com"), ElementsAre("com"));
  EXPECT_THAT(names_on_host(rules, "com"), IsEmpty());
}

TEST(Matcher, an_ipv6_literal_is_a_host) {
  const CompiledRules rules({on_host(rule_named("six"), "[2001:db8::1]")});
  EXPECT_THAT(names_on_host(rules, "[2001:DB8::1]:8443"), ElementsAre("six"));
}

TEST(Matcher, rules_without_a_host_match_every_host_and_none) {
  const CompiledRules rules({rule_named("all")});
  EXPECT_THAT(names_on_host(rules, "anything"), ElementsAre("all"));
  EXPECT_THAT(names_on_host(rules, ""), ElementsAre("all"));
}

TEST(Matcher, the_authority_of_an_absolute_target_stands_above_the_host_header) {
  const CompiledRules rules({on_host(rule_named("a"), "a.test"), on_host(rule_named("b"), "b.test")});
  TestRequest request;
  request.host = "b.test";
  request.path = "http://user@A.test:80/x";
  EXPECT_THAT(rules.names(request.view()), ElementsAre("a"));
}

TEST(Matcher, paths_match_exactly_by_prefix_and_by_glob) {
  const CompiledRules rules({on_path(rule_named("exact"), PathMatch::kExact, "/login"),
                             on_path(rule_named("prefix"), PathMatch::kPrefix, "/api/"),
                             on_path(rule_named("glob"), PathMatch::kGlob, "/**/edit"), rule_named("any")});
  EXPECT_THAT(names_on_path(rules, "/login?next=/"), ElementsAre("exact", "any"));
  EXPECT_THAT(names_on_path(rules, "/Login"), ElementsAre("any"));
  EXPECT_THAT(names_on_path(rules, "/login/"), ElementsAre("any"));
  EXPECT_THAT(names_on_path(rules, "/api/v1/edit"), ElementsAre("prefix", "glob", "any"));
  EXPECT_THAT(names_on_path(rules, "/api"), ElementsAre("any"));
}

TEST(Matcher, another_spelling_of_a_path_does_not_leave_the_rule) {
  const CompiledRules rules({on_path(rule_named("login"), PathMatch::kExact, "/login")});
  for (const char* path : {"//login", "/./login", "/x/../login", "/%6cogin", "/%2e/login", "http://other/login#x"}) {
    EXPECT_THAT(names_on_path(rules, path), ElementsAre("login")) << path;
  }
}

TEST(Matcher, methods_are_alternatives_in_any_case) {
  Rule rule = rule_named("write");
  rule.match.methods = {"POST", "PUT"};
  const CompiledRules rules({rule});
  TestRequest request;
  for (const char* method : {"POST", "PUT", "post"}) {
    request.method = method;
    EXPECT_THAT(rules.names(request.view()), ElementsAre("write")) << method;
  }
  for (const char* method : {"GET", "POS", "POSTS", ""}) {
    request.method = method;
    EXPECT_THAT(rules.names(request.view()), IsEmpty()) << method;
  }
}

TEST(Matcher, everything_that_a_rule_names_must_hold) {
  Rule rule = on_path(on_host(rule_named("r"), "example.com"), PathMatch::kExact, "/login");
  rule.match.methods = {"POST"};
  const CompiledRules rules({rule});
  TestRequest request;
  request.method = "POST";
  request.path = "/login";
  EXPECT_THAT(rules.names(request.view()), ElementsAre("r"));
  request.path = "/";
  EXPECT_THAT(rules.names(request.view()), IsEmpty());
}

TEST(Matcher, the_same_path_on_another_host_is_another_place) {
  const CompiledRules rules({on_path(on_host(rule_named("a"), "a.test"), PathMatch::kExact, "/x"),
                             on_path(on_host(rule_named("b"), "*.test"), PathMatch::kExact, "/x"),
                             on_path(rule_named("c"), PathMatch::kExact, "/x")});
  TestRequest request;
  request.path = "/x";
  request.host = "a.test";
  EXPECT_THAT(rules.names(request.view()), ElementsAre("a", "b", "c"));
  request.host = "b.test";
  EXPECT_THAT(rules.names(request.view()), ElementsAre("b", "c"));
}

// With 30,000 of them, several share slot and tag of the index (11 bits): the texts must decide.
TEST(Matcher, among_very_many_hosts_each_finds_its_own_rules_only) {
  std::vector<Rule> list;
  for (int i = 0; i < 30'000; ++i) {
    const std::string host = "h" + std::to_string(i) + ".test";
    list.push_back(on_path(on_host(rule_named(host), host), PathMatch::kExact, i % 2 == 0 ? "/x" : "/y"));
  }
  const CompiledRules rules(std::move(list));
  TestRequest request;
  request.path = "/x";
  for (int i = 0; i < 30'000; ++i) {
    request.host = "h" + std::to_string(i) + ".test";
    const Matches matches = rules.match(request.view());
    ASSERT_EQ(matches.count, i % 2 == 0 ? 1U : 0U) << request.host;
    if (matches.count == 1) {
      ASSERT_EQ(matches.items[0].rule, static_cast<RuleNumber>(i));
    }
    request.host += "x";
    ASSERT_EQ(rules.match(request.view()).count, 0U);
    ASSERT_EQ(rules.view().find(request.host), nullptr);
  }
}

TEST(Matcher, matches_come_in_the_order_of_the_configuration) {
  const CompiledRules rules({rule_named("1"), on_path(on_host(rule_named("2"), "*.com"), PathMatch::kPrefix, "/"),
                             on_path(on_host(rule_named("3"), "example.com"), PathMatch::kExact, "/"),
                             on_path(rule_named("4"), PathMatch::kExact, "/"),
                             on_host(rule_named("5"), "example.com")});
  EXPECT_THAT(names_on_host(rules, "example.com"), ElementsAre("1", "2", "3", "4", "5"));
}

TEST(Matcher, disabled_rules_do_not_match) {
  Rule off = rule_named("off");
  off.enabled = false;
  EXPECT_THAT(names_on_host(CompiledRules({off, rule_named("on")}), "x"), ElementsAre("on"));
}

TEST(Matcher, beyond_32_matches_the_first_of_the_configuration_stay_and_truncation_is_told) {
  std::vector<Rule> list;
  std::vector<std::string> first;
  for (std::size_t i = 0; i < kMatchesMax + 2; ++i) {
    // Rules alternate between two groups that are searched one after the other.
    const Rule rule = rule_named("r" + std::to_string(i));
    list.push_back(i % 2 == 0 ? rule : on_host(rule, "example.com"));
    if (i < kMatchesMax) first.push_back(rule.name);
  }
  const CompiledRules all(list);
  EXPECT_TRUE(all.match(TestRequest{}.view()).truncated);
  EXPECT_EQ(all.names(TestRequest{}.view()), first);
  list.resize(kMatchesMax);
  const CompiledRules exactly(list);
  EXPECT_FALSE(exactly.match(TestRequest{}.view()).truncated);
  EXPECT_EQ(exactly.names(TestRequest{}.view()), first);
}

/// The only rule's key for a request.
Key key_for(const CompiledRules& rules, const TestRequest& request) {
  const Matches matches = rules.match(request.view());
  EXPECT_EQ(matches.count, 1U);
  return matches.items[0].key;
}

CompiledRules keyed_by(std::vector<KeyPartSpec> parts) {
  Rule rule = rule_named("r");
  rule.key = std::move(parts);
  return CompiledRules({rule});
}

KeyBuilder builder_for(const CompiledRules& rules) { return {test_secret(), rules.set().all()[0].counter_identity}; }

TEST(MatcherKey, parts_come_in_the_order_of_the_rule) {
  const CompiledRules rules = keyed_by({{KeyPart::kMethod},
                                        {KeyPart::kHeader, "x-api-key"},
                                        {KeyPart::kClientIp, "", 24, 64},
                                        {KeyPart::kCookie, "s"},
                                        {KeyPart::kHost},
                                        {KeyPart::kPath}});
  TestRequest request;
  request.method = "get";
  request.host = "EXAMPLE.com:1";
  request.path = "/a/../b?c";
  request.headers = {{"cookie", "t=1; s=v"}, {"x-api-key", "k"}};
  KeyBuilder builder = builder_for(rules);
  builder.add(KeyPart::kMethod, "", "GET");
  builder.add(KeyPart::kHeader, "x-api-key", "k");
  builder.add(KeyPart::kClientIp, "", std::string_view("\xc0\x00\x02\x00", 4));  // 192.0.2.0
  builder.add(KeyPart::kCookie, "s", "v");
  builder.add(KeyPart::kHost, "", "example.com");
  builder.add(KeyPart::kPath, "", "/b");
  EXPECT_EQ(key_for(rules, request), builder.finish());
}

TEST(MatcherKey, addresses_share_a_key_within_their_prefix) {
  const CompiledRules rules = keyed_by({{KeyPart::kClientIp, "", 24, 56}});
  const auto key = [&](std::string client) {
    TestRequest request;
    request.client = std::move(client);
    return key_for(rules, request);
  };
  EXPECT_EQ(key("192.0.2.1"), key("192.0.2.255"));
  EXPECT_NE(key("192.0.2.1"), key("192.0.3.1"));
  EXPECT_EQ(key("2001:db8::1"), key("2001:db8:0:ff:ffff::"));
  EXPECT_NE(key("2001:db8::1"), key("2001:db8:0:100::1"));
}

TEST(MatcherKey, an_ipv4_address_mapped_into_ipv6_is_the_ipv4_address) {
  const CompiledRules rules = keyed_by({{KeyPart::kClientIp}});
  TestRequest plain;
  Request mapped = plain.view();
  mapped.client = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}, 16};
  EXPECT_EQ(rules.match(mapped).items[0].key, key_for(rules, plain));
}

TEST(MatcherKey, missing_differs_from_empty_and_parts_say_which_is_missing) {
  const CompiledRules rules = keyed_by({{KeyPart::kHeader, "a"}, {KeyPart::kCookie, "b"}});
  TestRequest request;
  std::vector<Key> keys;
  for (const auto& headers : std::vector<decltype(request.headers)>{
           {}, {{"a", ""}}, {{"cookie", "b="}}, {{"cookie", "x=1"}, {"a", ""}}, {{"a", ""}, {"cookie", "b="}}}) {
    request.headers = headers;
    keys.push_back(key_for(rules, request));
  }
  EXPECT_EQ(keys[1], keys[3]) << "a Cookie header without the cookie is as good as none";
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[0], keys[2]);
  EXPECT_NE(keys[1], keys[2]);
  EXPECT_NE(keys[1], keys[4]);
  EXPECT_NE(keys[2], keys[4]);
}

TEST(MatcherKey, an_unknown_address_is_missing) {
  const CompiledRules rules = keyed_by({{KeyPart::kClientIp}});
  TestRequest request;
  request.client = "";
  KeyBuilder builder = builder_for(rules);
  builder.add_missing(KeyPart::kClientIp, "");
  EXPECT_EQ(key_for(rules, request), builder.finish());
  Request odd = request.view();
  odd.client.bytes = 7;
  EXPECT_EQ(rules.match(odd).items[0].key, key_for(rules, request));
}

TEST(MatcherKey, without_a_header_function_every_header_is_missing) {
  const CompiledRules rules = keyed_by({{KeyPart::kHeader, "a"}});
  const TestRequest without_headers;
  Request request = without_headers.view();
  request.header = nullptr;
  EXPECT_EQ(rules.match(request).items[0].key, key_for(rules, without_headers));
}

TEST(MatcherKey, a_typed_key_is_the_key_of_the_request) {
  const CompiledRules rules = keyed_by({{KeyPart::kClientIp, "", 24, 64},
                                        {KeyPart::kHeader, "a"},
                                        {KeyPart::kHost},
                                        {KeyPart::kPath},
                                        {KeyPart::kMethod}});
  TestRequest request;
  request.client = "192.0.2.77";
  request.host = "Example.com:80";
  request.path = "/x/./y";
  Key typed;
  std::string reason;
  ASSERT_TRUE(key_of_values(rules.set().all()[0], test_secret(), {"192.0.2.1", "-", "EXAMPLE.com", "/x/y", "get"},
                            typed, reason))
      << reason;
  EXPECT_EQ(key_for(rules, request), typed);
}

TEST(MatcherKey, a_custom_key_is_a_namespace_of_its_own) {
  const CompiledRules rules = keyed_by({{KeyPart::kHeader, "a"}});
  const std::string value = "v";
  Matches custom;
  ASSERT_TRUE(custom_key(rules.view(), "r", std::as_bytes(std::span(value)), custom));
  ASSERT_EQ(custom.count, 1U);
  EXPECT_EQ(custom.items[0].rule, 0U);
  KeyBuilder builder = builder_for(rules);
  builder.add(KeyPart::kCustom, "", "v");
  EXPECT_EQ(custom.items[0].key, builder.finish());
  EXPECT_FALSE(custom_key(rules.view(), "other", {}, custom));
}

// What a node that knows one secret only makes of the same request, long values (which are hashed) included.
TEST(MatcherKey, two_secrets_give_the_keys_that_each_of_them_gives_alone) {
  std::vector<Rule> list = {rule_named("a"), rule_named("b")};
  list[1].key = {{KeyPart::kHeader, "x-api-key"}, {KeyPart::kPath, ""}};
  HashSecret other = test_secret();
  other.bytes[0] = 0;
  TestRequest request;
  request.headers = {{"x-api-key", std::string(1000, 'k')}};
  const Matches first = CompiledRules(list).match(request.view());
  const Matches second = CompiledRules(list, {}, other).match(request.view());
  EXPECT_EQ(first.second, SecondSecret::kNone);
  for (const SecondSecret use : {SecondSecret::kCounted, SecondSecret::kChecked}) {
    const CompiledRules rules(list, {}, {test_secret(), other, use});
    ASSERT_TRUE(rules.opened()) << rules.reason();
    EXPECT_EQ(rules.view().secrets(), HashSecrets(test_secret(), other, use));
    const Matches both = rules.match(request.view());
    EXPECT_EQ(both.second, use);
    ASSERT_EQ(both.count, 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(both.items[i].key, first.items[i].key);
      EXPECT_EQ(both.second_keys[i], second.items[i].key);
    }
    Matches custom;
    Matches alone;
    ASSERT_TRUE(custom_key(rules.view(), "b", {}, custom));
    EXPECT_EQ(custom.second, use);
    const CompiledRules of_other(list, {}, other);
    ASSERT_TRUE(custom_key(of_other.view(), "b", {}, alone));
    EXPECT_EQ(custom.second_keys[0], alone.items[0].key);
  }
}

}  // namespace
}  // namespace popgate
