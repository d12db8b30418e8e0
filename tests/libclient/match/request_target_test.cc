// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/request_target.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace popgate {
namespace {

std::string path(std::string_view target) {
  PathBuffer buffer;
  return std::string(read_target(target, buffer).path);
}

std::string authority(std::string_view target) {
  PathBuffer buffer;
  return std::string(read_target(target, buffer).authority);
}

std::string repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(RequestTarget, ends_at_the_query_or_fragment) {
  EXPECT_EQ(path("/a/b?c=/d"), "/a/b");
  EXPECT_EQ(path("/a#b"), "/a");
  EXPECT_EQ(path("/?"), "/");
  EXPECT_EQ(path("/a/../b?x/../y"), "/b");
}

TEST(RequestTarget, plain_paths_are_not_copied) {
  const std::string target = "/some/plain-path_with~all.of.it/(a,b;c=d)";
  PathBuffer buffer;
  EXPECT_EQ(read_target(target, buffer).path.data(), target.data());
}

TEST(RequestTarget, dot_segments_and_double_slashes_are_resolved) {
  EXPECT_EQ(path("//a///b"), "/a/b");
  EXPECT_EQ(path("/a/./b"), "/a/b");
  EXPECT_EQ(path("/a/../b"), "/b");
  EXPECT_EQ(path("/../../a"), "/a");
  EXPECT_EQ(path("/a/b/.."), "/a/");
  EXPECT_EQ(path("/a/b/."), "/a/b/");
  EXPECT_EQ(path("/a/b//"), "/a/b/");
  EXPECT_EQ(path("/.."), "/");
  EXPECT_EQ(path("/a//../b"), "/b");
  EXPECT_EQ(path("/.well-known/..x/..."), "/.well-known/..x/...");
}

TEST(RequestTarget, encoded_bytes_are_decoded_unless_they_would_mean_something_else) {
  EXPECT_EQ(path("/%6Cogin"), "/login");
  EXPECT_EQ(path("/%7euser/%41%2d%5F"), "/~user/A-_");
  EXPECT_EQ(path("/caf%c3%a9"), "/caf\xc3\xa9");
  EXPECT_EQ(path("/a%3ab%20c"), "/a:b c");
  EXPECT_EQ(path("/a%2fb"), "/a%2Fb");
  EXPECT_EQ(path("/a%3fb%23c%25d"), "/a%3Fb%23c%25d");
  EXPECT_EQ(path("/a%0ab%00%7f"), "/a%0Ab%00%7F");
}

TEST(RequestTarget, encoded_dots_are_dots) {
  EXPECT_EQ(path("/a/%2e%2E/b"), "/b");
  EXPECT_EQ(path("/a/.%2e/b"), "/b");
  EXPECT_EQ(path("/a/%2e/b"), "/a/b");
}

TEST(RequestTarget, broken_encodings_stand_for_themselves) {
  EXPECT_EQ(path("/100%"), "/100%");
  EXPECT_EQ(path("/%zz%4"), "/%zz%4");
}

TEST(RequestTarget, is_decoded_once) { EXPECT_EQ(path("/%2541"), "/%2541"); }

TEST(RequestTarget, an_absolute_target_is_split) {
  EXPECT_EQ(path("http://Example.com:80/a/../b?c"), "/b");
  EXPECT_EQ(authority("http://Example.com:80/a"), "Example.com:80");
  EXPECT_EQ(authority("https://user:secret@example.com"), "example.com");
  EXPECT_EQ(path("https://example.com"), "/");
  EXPECT_EQ(path("https://example.com?a"), "/");
  EXPECT_EQ(authority("/http://example.com/"), "");
  EXPECT_EQ(path("/http://example.com/"), "/http:/example.com/");
}

TEST(RequestTarget, other_forms_stay_as_they_are) {
  EXPECT_EQ(path("*"), "*");
  EXPECT_EQ(path("example.com:443"), "example.com:443");
  EXPECT_EQ(path(""), "");
  EXPECT_EQ(path("://x/y"), "://x/y");
}

TEST(RequestTarget, a_long_detour_to_a_short_path_is_resolved_exactly) {
  EXPECT_EQ(path("/" + repeated("./", 3 * kPathBytesMax) + "login"), "/login");
  EXPECT_EQ(path(repeated("/segment", kPathBytesMax) + repeated("/..", kPathBytesMax) + "/login"), "/login");
  EXPECT_EQ(path("/" + std::string(2 * kPathBytesMax, 'x') + "/../login"), "/login");
  EXPECT_EQ(path("/a/" + std::string(2 * kPathBytesMax, 'x') + "/y/../../login"), "/a/login");
}

TEST(RequestTarget, a_resolved_path_beyond_the_bound_keeps_its_beginning) {
  const std::string resolved = path("/a/./" + std::string(2 * kPathBytesMax, 'x') + "/y");
  EXPECT_EQ(resolved, "/a/" + std::string(kPathBytesMax - 3, 'x'));
}

// The reference works on whole strings: decode, split, fold. Nothing of it is shared with the matcher's one pass.
std::string reference_path(const std::string& target) {
  const std::string cut = target.substr(0, target.find_first_of("?#"));
  std::vector<std::string> folders;
  bool folder = true;
  std::size_t at = 0;
  while (at < cut.size()) {
    const std::size_t end = std::min(cut.find('/', at + 1), cut.size());
    const std::string raw = cut.substr(at + 1, end - at - 1);
    std::string segment;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      unsigned byte = 0;
      const bool encoded = raw[i] == '%' && i + 2 < raw.size() &&
                           std::isxdigit(static_cast<unsigned char>(raw[i + 1])) &&
                           std::isxdigit(static_cast<unsigned char>(raw[i + 2]));
      if (encoded) byte = static_cast<unsigned>(std::stoul(raw.substr(i + 1, 2), nullptr, 16));
      const bool kept =
          byte < 0x20 || byte == 0x7f || std::string("/?#%").find(static_cast<char>(byte)) != std::string::npos;
      if (!encoded) {
        segment += raw[i];
        continue;
      }
      char text[16];
      std::snprintf(text, sizeof text, "%%%02X", byte);
      segment += kept ? std::string(text) : std::string(1, static_cast<char>(byte));
      i += 2;
    }
    folder = segment.empty() || segment == "." || segment == "..";
    if (segment == ".." && !folders.empty()) folders.pop_back();
    if (!folder) folders.push_back(segment);
    at = end;
  }
  std::string joined;
  for (const std::string& name : folders) joined += "/" + name;
  return folder ? joined + "/" : joined;
}

RC_GTEST_PROP(RequestTarget, resolves_as_the_reference_does, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
      std::vector<std::string>{"/",  ".",   "..", "a", "%2e",    "%2E",  "%41", "%2f",     "%",    "%3",
                               "bc", "%00", "?",  "#", "%c3%a9", "/../", "//",  "%%34%31", "\xff", "%3F"}));
  std::string target = "/";
  for (const std::string& part : parts) target += part;
  RC_ASSERT(path(target) == reference_path(target));
}

}  // namespace
}  // namespace popgate
