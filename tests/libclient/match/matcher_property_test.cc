// SPDX-License-Identifier: Apache-2.0
//
// The matcher against a scan over all rules that compares strings and uses regular expressions for globs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <regex.h>

#include "tests/libclient/match/compiled_rules.h"

namespace popgate {
namespace {

const std::vector<std::string> kHosts = {"a.test", "b.test", "x.a.test", "y.x.a.test", "test", "other", "a.test.other"};
const std::vector<std::string> kSuffixes = {"*.test", "*.a.test", "*.x.a.test", "*.other"};
const std::vector<std::string> kPaths = {"/", "/a", "/a/b", "/a/b/c", "/b", "/ab"};
const std::vector<std::string> kGlobs = {"/*", "/a/*", "/a/**", "/**/c", "/?", "/a*", "/**b**"};
const std::vector<std::string> kMethods = {"GET", "POST", "PUT"};

std::string one_of(const std::vector<std::string>& list) { return *rc::gen::elementOf(list); }

Rule random_rule(std::size_t index) {
  Rule rule = rule_named("rule-" + std::to_string(index));
  const int host = *rc::gen::inRange(0, 3);
  if (host == 1) rule = on_host(rule, one_of(kHosts));
  if (host == 2) rule = on_host(rule, one_of(kSuffixes));
  const auto path = *rc::gen::element(PathMatch::kAny, PathMatch::kExact, PathMatch::kPrefix, PathMatch::kGlob);
  if (path != PathMatch::kAny) rule = on_path(rule, path, one_of(path == PathMatch::kGlob ? kGlobs : kPaths));
  if (*rc::gen::inRange(0, 4) == 0) rule.match.methods = {one_of(kMethods), one_of(kMethods)};
  rule.enabled = *rc::gen::inRange(0, 8) != 0;
  return rule;
}

bool matches_as_regular_expression(const std::string& glob, const std::string& path) {
  std::string text = "^";
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const bool two = glob.compare(i, 2, "**") == 0;
    if (two) ++i;
    text += two ? ".*" : glob[i] == '*' ? "[^/]*" : glob[i] == '?' ? "[^/]" : std::string(1, glob[i]);
  }
  regex_t expression;
  RC_ASSERT(regcomp(&expression, (text + "$").c_str(), REG_EXTENDED | REG_NOSUB) == 0);
  const bool found = regexec(&expression, path.c_str(), 0, nullptr, 0) == 0;
  regfree(&expression);
  return found;
}

bool holds(const Rule& rule, const TestRequest& request) {
  if (!rule.enabled) return false;
  const MatchSpec& match = rule.match;
  if (match.host_match == HostMatch::kExact && request.host != match.host) return false;
  if (match.host_match == HostMatch::kSuffix && !request.host.ends_with(match.host)) return false;
  if (match.path_match == PathMatch::kExact && request.path != match.path) return false;
  if (match.path_match == PathMatch::kPrefix && request.path.rfind(match.path, 0) != 0) return false;
  if (match.path_match == PathMatch::kGlob && !matches_as_regular_expression(match.path, request.path)) return false;
  return match.methods.empty() ||
         std::find(match.methods.begin(), match.methods.end(), request.method) != match.methods.end();
}

RC_GTEST_PROP(MatcherProperty, finds_what_a_scan_over_all_rules_finds_in_the_same_order, ()) {
  std::vector<Rule> list;
  const auto count = *rc::gen::inRange<std::size_t>(0, 60);
  for (std::size_t i = 0; i < count; ++i) list.push_back(random_rule(i));
  const CompiledRules rules(list);
  RC_ASSERT(rules.opened());
  for (int i = 0; i < 20; ++i) {
    TestRequest request;
    request.host = one_of(kHosts);
    request.path = one_of(kPaths);
    request.method = one_of(kMethods);
    std::vector<std::string> expected;
    for (const Rule& rule : list) {
      if (holds(rule, request)) expected.push_back(rule.name);
    }
    const bool truncated = expected.size() > kMatchesMax;
    if (truncated) expected.resize(kMatchesMax);
    RC_ASSERT(rules.names(request.view()) == expected);
    RC_ASSERT(rules.match(request.view()).truncated == truncated);
  }
}

}  // namespace
}  // namespace popgate
