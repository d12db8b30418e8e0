// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/glob.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace popgate {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  GlobShape shape;
  EXPECT_TRUE(read_glob(pattern, shape)) << pattern;
  return glob_matches(pattern, shape, text);
}

TEST(Glob, a_star_stays_within_a_segment) {
  EXPECT_TRUE(matches("/a/*", "/a/b"));
  EXPECT_TRUE(matches("/a/*", "/a/"));
  EXPECT_FALSE(matches("/a/*", "/a/b/c"));
  EXPECT_TRUE(matches("/a/*/c", "/a/b/c"));
  EXPECT_FALSE(matches("/a/*/c", "/a/b/b/c"));
  EXPECT_TRUE(matches("/*.php", "/index.php"));
  EXPECT_FALSE(matches("/*.php", "/a/index.php"));
}

TEST(Glob, two_stars_cross_segments) {
  EXPECT_TRUE(matches("/a/**", "/a/b/c"));
  EXPECT_TRUE(matches("/a/**", "/a/"));
  EXPECT_FALSE(matches("/a/**", "/a"));
  EXPECT_TRUE(matches("/**/login", "/x/y/login"));
  EXPECT_TRUE(matches("/**login**", "/wp-login.php"));
  EXPECT_FALSE(matches("/**login**", "/wp-logon.php"));
}

TEST(Glob, a_question_mark_is_one_byte_of_a_segment) {
  EXPECT_TRUE(matches("/v?/x", "/v1/x"));
  EXPECT_FALSE(matches("/v?/x", "/v/x"));
  EXPECT_FALSE(matches("/v?/x", "/v12/x"));
  EXPECT_FALSE(matches("/v?x", "/v/x"));
}

TEST(Glob, head_and_tail_do_not_overlap) {
  EXPECT_FALSE(matches("/aba*ba", "/aba"));
  EXPECT_TRUE(matches("/aba*ba", "/ababa"));
}

TEST(Glob, single_and_double_stars_mix) {
  EXPECT_TRUE(matches("/a/*/b/**/c", "/a/x/b/y/z/c"));
  EXPECT_FALSE(matches("/a/*/b/**/c", "/a/x/x/b/y/z/c"));
  EXPECT_TRUE(matches("***", "a/b"));
}

TEST(Glob, a_pattern_needs_a_wildcard_and_at_most_63_steps_between_its_wildcards) {
  GlobShape shape;
  EXPECT_FALSE(read_glob("/plain", shape));
  EXPECT_TRUE(read_glob("/*" + std::string(kGlobStepsMax, 'x') + "*", shape));
  EXPECT_FALSE(read_glob("/*" + std::string(kGlobStepsMax + 1, 'x') + "*", shape));
  EXPECT_TRUE(read_glob(std::string(200, 'x') + "*" + std::string(200, 'y'), shape));
}

TEST(Glob, the_longest_automaton_matches) {
  const std::string inner(kGlobStepsMax, 'x');
  EXPECT_TRUE(matches("/*" + inner + "*", "/" + inner));
  EXPECT_FALSE(matches("/*" + inner + "*", "/" + inner.substr(1)));
}

// 4,000 bytes against a pattern that would take a backtracking matcher about 4,000^8 / 8! steps. The reference for
// "quick" is the test's own time-out.
TEST(Glob, repeated_stars_cannot_make_it_slow) {
  const std::string text = "/" + std::string(4000, 'a');
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(matches("/**a*a**a*a**a*a**a*a**b", text));
}

/// Straight from the definition, by trying every split: exponential, so only for short texts.
bool reference(const std::string& pattern, const std::string& text) {
  if (pattern.empty()) return text.empty();
  if (pattern.starts_with("**")) {
    for (std::size_t taken = 0; taken <= text.size(); ++taken) {
      if (reference(pattern.substr(2), text.substr(taken))) return true;
    }
    return false;
  }
  if (pattern.front() == '*') {
    for (std::size_t taken = 0; taken <= text.size(); ++taken) {
      if (reference(pattern.substr(1), text.substr(taken))) return true;
      if (taken < text.size() && text[taken] == '/') return false;
    }
    return false;
  }
  if (text.empty()) return false;
  const bool one = pattern.front() == '?' ? text.front() != '/' : pattern.front() == text.front();
  return one && reference(pattern.substr(1), text.substr(1));
}

RC_GTEST_PROP(Glob, matches_as_its_definition_does, ()) {
  const auto of = [](std::string letters) {
    return rc::gen::resize(12, rc::gen::container<std::string>(rc::gen::elementOf(std::move(letters))));
  };
  const std::string pattern = *of("ab/*?*") + "*" + *of("ab/*?*");
  const std::string text = *of("aab/");
  RC_ASSERT(matches(pattern, text) == reference(pattern, text));
}

}  // namespace
}  // namespace popgate
