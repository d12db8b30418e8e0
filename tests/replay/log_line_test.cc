// SPDX-License-Identifier: Apache-2.0
#include "replay/log_line.h"

#include <gtest/gtest.h>

#include "replay/log_time.h"

namespace popgate {
namespace {

struct Read {
  ParsedLine parsed;
  AccessRecord record;
  std::string scratch;
  [[nodiscard]] bool lenient() const { return record.lenient_why != nullptr; }
  [[nodiscard]] std::string why() const { return lenient() ? record.lenient_why : ""; }
  [[nodiscard]] std::string reason() const { return parsed.reason != nullptr ? parsed.reason : ""; }
};

std::unique_ptr<Read> parse(std::string_view line, LogFormat format = LogFormat::kCombined) {
  auto read = std::make_unique<Read>();
  read->parsed = parse_log_line(line, format, read->scratch, read->record);
  return read;
}

std::unique_ptr<Read> record_of(std::string_view line, LogFormat format = LogFormat::kCombined) {
  auto read = parse(line, format);
  EXPECT_EQ(read->parsed.kind, LineKind::kRecord) << line << "\n" << read->reason();
  return read;
}

constexpr const char* kCombinedLine =
    R"(192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif?x=1 HTTP/1.0" 200 2326 "http://example.com/s" "Mozilla/4.08 [en]")";

TEST(LogLine, combined_line_gives_every_field) {
  const auto read = record_of(kCombinedLine);
  EXPECT_FALSE(read->lenient()) << read->why();
  EXPECT_EQ(log_time_text(read->record.time), "2000-10-10T20:55:36Z");
  EXPECT_EQ(read->record.client, "192.0.2.7");
  EXPECT_EQ(read->record.host, "");
  EXPECT_EQ(read->record.method, "GET");
  EXPECT_EQ(read->record.target, "/a.gif?x=1");
  EXPECT_EQ(read->record.status, "200");
  EXPECT_EQ(read->record.referer, "http://example.com/s");
  EXPECT_EQ(read->record.user_agent, "Mozilla/4.08 [en]");
}

TEST(LogLine, common_line_has_neither_referer_nor_user_agent) {
  const auto read = record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 404 -)");
  EXPECT_FALSE(read->lenient());
  EXPECT_EQ(read->record.referer, "");
  EXPECT_EQ(read->record.user_agent, "");
}

TEST(LogLine, virtual_host_is_read_with_and_without_port) {
  const auto with = record_of(
      R"(www.example.com:443 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)", LogFormat::kVhost);
  EXPECT_FALSE(with->lenient());
  EXPECT_EQ(with->record.host, "www.example.com:443");
  EXPECT_EQ(with->record.client, "192.0.2.7");
  const auto without =
      record_of(R"(localhost 2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)", LogFormat::kVhost);
  EXPECT_EQ(without->record.host, "localhost");
  EXPECT_EQ(without->record.client, "2001:db8::1");
  const auto named = record_of(
      R"(www.example.com c.example.net - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)", LogFormat::kVhost);
  EXPECT_EQ(named->record.client, "c.example.net");
}

TEST(LogLine, line_of_the_other_format_is_read_leniently) {
  EXPECT_EQ(record_of(kCombinedLine, LogFormat::kVhost)->why(), "no virtual host before the client");
  EXPECT_EQ(record_of(R"(www.example.com 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)")->why(),
            "virtual host before the client");
}

TEST(LogLine, missing_or_additional_words_before_the_time_are_tolerated_behind_an_address) {
  const auto one = record_of(R"(192.0.2.7 [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)");
  EXPECT_TRUE(one->lenient());
  EXPECT_EQ(one->record.client, "192.0.2.7");
  const auto user = record_of(R"(192.0.2.7 - John Q Smith [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)");
  EXPECT_TRUE(user->lenient());
  EXPECT_EQ(user->record.client, "192.0.2.7");
  EXPECT_EQ(user->record.host, "");
  const auto both =
      record_of(R"(w.example.com 192.0.2.7 - a - [10/Oct/2000:13:55:36 -0700] "X" 400 5)", LogFormat::kVhost);
  EXPECT_EQ(both->record.client, "192.0.2.7");
  EXPECT_TRUE(both->lenient());
}

TEST(LogLine, user_name_may_hold_brackets) {
  const auto read = record_of(R"(192.0.2.7 - [bob] [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)");
  EXPECT_FALSE(read->lenient());
  EXPECT_EQ(log_time_text(read->record.time), "2000-10-10T20:55:36Z");
}

TEST(LogLine, requests_that_are_none_are_still_hits) {
  for (const char* request :
       {"", "-", R"(\x16\x03\x01\x01 \x02)", "XXXX", R"({\"a\":1}\n)", "OPTIONS / KUOL/1.0", "GET /a b", "GET", "GET ",
        "get / HTTP/1.1", "x0 00.0.0", "GET  HTTP/1.1", "GET / HTTP/", "GET / HTTP/1.", "GET / HTTP/1.1x"}) {
    const std::string line =
        std::string(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] ")") + request + R"(" 400 226 "-" "-")";
    const auto read = record_of(line);
    EXPECT_TRUE(read->record.request_bad) << request;
    EXPECT_EQ(read->record.request, request);
    EXPECT_EQ(read->record.method, "");
    EXPECT_EQ(read->record.status, "400") << request;
    EXPECT_FALSE(read->lenient()) << request;
  }
}

TEST(LogLine, unusual_requests_are_split) {
  const auto target_of = [](std::string_view request) {
    const std::string line =
        std::string(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] ")") + std::string(request) + R"(" 200 226)";
    const auto read = record_of(line);
    EXPECT_FALSE(read->record.request_bad) << request;
    return std::string(read->record.target);
  };
  EXPECT_EQ(target_of("OPTIONS * HTTP/1.0"), "*");
  EXPECT_EQ(target_of("GET /"), "/");
  EXPECT_EQ(target_of("GET / HTTP/2"), "/");
  EXPECT_EQ(target_of("CONNECT 192.0.2.9:443 HTTP/1.1"), "192.0.2.9:443");
  EXPECT_EQ(target_of("GET http://192.0.2.9/ HTTP/1.1"), "http://192.0.2.9/");
  EXPECT_EQ(target_of("GET /a.php?x= ../../etc HTTP/1.1"), "/a.php?x= ../../etc");
  EXPECT_EQ(target_of(R"(GET /a\"b HTTP/1.1)"), R"(/a\"b)");
  EXPECT_EQ(target_of("M-SEARCH * HTTP/1.1"), "*");
}

TEST(LogLine, unescaped_quote_in_the_request_is_tolerated) {
  const auto read = record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a"b HTTP/1.1" 200 226 "-" "ua")");
  EXPECT_EQ(read->record.target, R"(/a"b)");
  EXPECT_EQ(read->record.user_agent, "ua");
  EXPECT_EQ(read->why(), "an unescaped quote inside the request");
}

TEST(LogLine, request_that_ends_in_a_backslash_is_tolerated) {
  const auto read = record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a\" 200 226 "-" "ua")");
  EXPECT_EQ(read->record.request, R"(GET /a\)");
  EXPECT_EQ(read->record.status, "200");
}

TEST(LogLine, cut_lines_are_hits_as_long_as_client_and_time_are_there) {
  EXPECT_EQ(record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 226 "-" "Mozil)")->why(),
            "unbalanced quotes after the status");
  EXPECT_EQ(record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /ab)")->why(),
            "the line ends inside the request");
  EXPECT_EQ(record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1")")->why(),
            "no status after the request");
  EXPECT_EQ(record_of(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -0700])")->why(), "no request after the time");
  EXPECT_EQ(parse(R"(192.0.2.7 - - [10/Oct/2000:13:55:36 -07)")->parsed.kind, LineKind::kUnparsable);
  EXPECT_EQ(parse(R"(192.0.2.7 - -)")->parsed.kind, LineKind::kUnparsable);
}

TEST(LogLine, line_between_quotes_is_unwrapped) {
  const auto escaped =
      record_of(R"("192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 226 \"-\" \"ua\"")");
  EXPECT_EQ(escaped->why(), "quotes around the line");
  EXPECT_EQ(escaped->record.target, "/a");
  EXPECT_EQ(escaped->record.user_agent, "ua");
  const auto doubled = record_of(R"("192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] ""GET /a HTTP/1.1"" 200 226")");
  EXPECT_EQ(doubled->record.target, "/a");
  EXPECT_EQ(doubled->record.status, "200");
  const auto single = record_of(R"('192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 226')");
  EXPECT_EQ(single->record.target, "/a");
}

TEST(LogLine, odd_bytes_do_no_harm) {
  std::string line = R"(192.0.2.7 - u [10/Oct/2000:13:55:36 -0700] "GET /)";
  line += std::string("\x00\xff\xc3", 3) + R"( HTTP/1.1" 200 226 "-" "ua")";
  const auto read = record_of(line);
  EXPECT_EQ(read->record.target, std::string("/\x00\xff\xc3", 4));
  EXPECT_EQ(record_of(std::string(kCombinedLine) + "\r")->record.user_agent, "Mozilla/4.08 [en]");
}

TEST(LogLine, blank_and_comment_lines_are_told_apart_from_unreadable_ones) {
  EXPECT_EQ(parse("")->parsed.kind, LineKind::kBlank);
  EXPECT_EQ(parse(" \t\r")->parsed.kind, LineKind::kBlank);
  EXPECT_EQ(parse("#Fields: date time")->parsed.kind, LineKind::kComment);
  EXPECT_EQ(parse("hello")->parsed.kind, LineKind::kUnparsable);
}

TEST(LogLine, lines_of_other_logs_are_refused_with_a_reason) {
  const auto refused = [](std::string_view line) {
    const auto read = parse(line);
    EXPECT_EQ(read->parsed.kind, LineKind::kUnparsable) << line;
    return read->reason();
  };
  EXPECT_NE(refused(R"(2021/09/30 09:23:53 [error] 87#87: *17 user "a" was not found, client: 127.0.0.1)"), "");
  EXPECT_NE(refused("[Thu Oct 13 12:24:49.945365 2022] [auth:error] [client 192.0.2.7:50229] AH01618: user"), "");
  EXPECT_NE(refused(R"([24/Jan/2022:16:51:02 +0000] - 404 404 - GET http h.local "/x" [Client 192.0.2.7])"), "");
  EXPECT_NE(
      refused(R"(Sep 15 16:13:46 web nginx[2869]: 192.0.2.7 - - [15/Sep/2021:16:13:46 +0000] "GET / HTTP/1.1" 200 5)"),
      "");
  EXPECT_NE(refused(R"(192.0.2.7 - a [27/Jun/2013:11:55:44] "GET / HTTP/1.1" 200 266)").find("no zone"),
            std::string::npos);
  EXPECT_NE(refused(R"(- - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 266)"), "");
  EXPECT_NE(refused(R"({"client":"192.0.2.7","time":"2000-10-10T13:55:36Z"})"), "");
}

TEST(LogLine, format_is_voted_by_the_words_before_the_time) {
  EXPECT_EQ(format_vote(kCombinedLine), -1);
  EXPECT_EQ(format_vote(R"(w.example.com:80 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)"), 1);
  EXPECT_EQ(format_vote(R"(192.0.2.7 - John Smith [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5)"), -1);
  EXPECT_EQ(format_vote("2021/09/30 09:23:53 [error] 87#87"), 0);
}

TEST(LogLine, escapes_are_undone) {
  EXPECT_EQ(unescape_log_text(R"(/a\"b\\c\x41\n)"), "/a\"b\\cA\n");
  EXPECT_EQ(unescape_log_text(R"(\x4)"), "x4");
  EXPECT_EQ(unescape_log_text("end\\"), "end\\");
}

}  // namespace
}  // namespace popgate
