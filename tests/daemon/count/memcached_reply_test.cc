// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memcached_reply.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

namespace popgate {
namespace {

using Kind = MemcachedReply::Kind;

/// A reply that outlives the call.
struct Seen {
  Kind kind;
  std::uint64_t number;
  bool is_number;
  std::string key;
  std::string text;
  friend bool operator==(const Seen&, const Seen&) = default;
};

struct Outcome {
  std::vector<Seen> replies;
  bool good = true;
};

/// Feeds the bytes in pieces that end at `cuts`.
Outcome feed(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  MemcachedReplyParser parser;
  Outcome outcome;
  const auto keep = [&](const MemcachedReply& reply) {
    outcome.replies.push_back(
        {reply.kind, reply.number, reply.is_number, std::string(reply.key), std::string(reply.text)});
    return true;
  };
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    // A copy of its own, so that a view kept too long is seen by AddressSanitizer.
    const std::string piece(bytes.substr(begin, cut - begin));
    outcome.good = outcome.good && parser.feed(piece, keep);
    begin = cut;
  }
  outcome.good = outcome.good && parser.feed(std::string(bytes.substr(begin)), keep);
  return outcome;
}

Outcome feed(std::string_view bytes) { return feed(bytes, {}); }

Seen only(std::string_view bytes) {
  const Outcome outcome = feed(bytes);
  EXPECT_TRUE(outcome.good);
  EXPECT_EQ(outcome.replies.size(), 1u);
  return outcome.replies.empty() ? Seen{} : outcome.replies[0];
}

TEST(MemcachedReply, each_reply_of_our_commands_is_read) {
  EXPECT_EQ(only("STORED\r\n").kind, Kind::kStored);
  EXPECT_EQ(only("NOT_STORED\r\n").kind, Kind::kNotStored);
  EXPECT_EQ(only("NOT_FOUND\r\n").kind, Kind::kNotFound);
  EXPECT_EQ(only("END\r\n").kind, Kind::kEnd);
  EXPECT_EQ(only("ERROR\r\n").kind, Kind::kError);
  EXPECT_EQ(only("42\r\n"), (Seen{Kind::kNumber, 42, false, "", ""}));
  EXPECT_EQ(only("VALUE k 0 2\r\n17\r\n"), (Seen{Kind::kValue, 17, true, "k", "17"}));
  EXPECT_EQ(only("STAT evictions 9\r\n"), (Seen{Kind::kStat, 0, false, "evictions", "9"}));
  EXPECT_EQ(only("CLIENT_ERROR bad thing\r\n"), (Seen{Kind::kClientError, 0, false, "", "bad thing"}));
  EXPECT_EQ(only("SERVER_ERROR Connection timed out\r\n"),
            (Seen{Kind::kServerError, 0, false, "", "Connection timed out"}));
}

TEST(MemcachedReply, numbers_are_64_bits_and_larger_ones_are_malformed) {
  EXPECT_EQ(only("18446744073709551615\r\n").number, UINT64_MAX);
  EXPECT_EQ(only("2147483648\r\n").number, std::uint64_t{1} << 31);
  EXPECT_FALSE(feed("18446744073709551616\r\n").good);
  EXPECT_FALSE(feed("12x\r\n").good);
}

TEST(MemcachedReply, spaces_that_memcached_pads_numbers_with_are_ignored) {
  EXPECT_EQ(only("9 \r\n").number, 9u);
  EXPECT_EQ(only("VALUE k 0 3\r\n9  \r\n").number, 9u);
}

TEST(MemcachedReply, a_value_that_is_no_number_is_a_value_without_one) {
  EXPECT_EQ(only("VALUE k 0 3\r\nabc\r\n"), (Seen{Kind::kValue, 0, false, "k", "abc"}));
}

TEST(MemcachedReply, a_value_s_data_may_contain_line_ends) {
  EXPECT_EQ(only("VALUE k 0 4\r\n\r\n\r\n\r\n").text, "\r\n\r\n");
}

TEST(MemcachedReply, hostile_replies_are_refused) {
  EXPECT_FALSE(feed("VALUE k 0 65\r\n").good) << "longer than any counter";
  EXPECT_FALSE(feed("VALUE k 0 18446744073709551615\r\n").good);
  EXPECT_FALSE(feed("VALUE k 0 -1\r\n").good);
  EXPECT_FALSE(feed("VALUE  0 1\r\n1\r\n").good) << "no key";
  EXPECT_FALSE(feed("VALUE k 0 1\r\n12\r\n").good) << "more data than announced";
  EXPECT_FALSE(feed("STORED\n").good) << "no carriage return";
  EXPECT_FALSE(feed("\n").good);
  EXPECT_FALSE(feed("HTTP/1.1 400 Bad Request\r\n").good);
  EXPECT_FALSE(feed(std::string("STORED\0\r\n", 9)).good);
  EXPECT_FALSE(feed("SERVER_ERROR " + std::string(MemcachedReplyParser::kLineBytesMax, 'x')).good)
      << "a line without an end";
}

TEST(MemcachedReply, a_fault_is_told_in_printable_words_and_ends_reading) {
  MemcachedReplyParser parser;
  EXPECT_FALSE(parser.feed("what\x01\r\nSTORED\r\n", [](const MemcachedReply&) { return true; }));
  EXPECT_EQ(parser.fault(), "found \"what...STORED..\", allowed: a reply of memcached to add, incr, get or stats");
  EXPECT_FALSE(parser.feed("STORED\r\n", [](const MemcachedReply&) -> bool { throw "reported after a fault"; }));
}

const std::string kDialogue =
    "STORED\r\nNOT_STORED\r\n123\r\nNOT_FOUND\r\nVALUE pg1:0:{abc}:1:2 0 3\r\n456\r\nVALUE k 0 2\r\n\r\n\r\nEND\r\n"
    "SERVER_ERROR out of memory storing object\r\nSTAT a b\r\nEND\r\nCLIENT_ERROR x\r\nERROR\r\n";

TEST(MemcachedReply, replies_do_not_depend_on_where_the_bytes_were_cut) {
  const Outcome whole = feed(kDialogue);
  ASSERT_TRUE(whole.good);
  ASSERT_EQ(whole.replies.size(), 12u);
  for (std::size_t cut = 0; cut <= kDialogue.size(); ++cut) {
    const Outcome cut_once = feed(kDialogue, {cut});
    EXPECT_TRUE(cut_once.good);
    EXPECT_EQ(cut_once.replies, whole.replies) << "cut at " << cut;
  }
  std::vector<std::size_t> everywhere;
  for (std::size_t i = 1; i < kDialogue.size(); ++i) everywhere.push_back(i);
  EXPECT_EQ(feed(kDialogue, everywhere).replies, whole.replies);
}

TEST(MemcachedReply, any_bytes_cut_anywhere_give_what_they_give_in_one_piece) {
  const bool holds = rc::check([] {
    // Pieces of replies and of noise, in any order: mostly malformed somewhere, which must be the same place.
    const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "STORED\r\n", "NOT_FOUND\r\n", "7\r\n", "VALUE k 0 1\r\n", "1\r\n", "VALUE k 0 2\r\n55\r\n", "END\r\n", "\r\n",
        "\n", "SERVER_ERROR ", "x", std::string(700, 'y'), "STAT a 1\r\n"));
    std::string bytes;
    for (const std::string& part : parts) bytes += part;
    auto cuts = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    const Outcome whole = feed(bytes);
    const Outcome pieces = feed(bytes, cuts);
    RC_ASSERT(whole.good == pieces.good);
    RC_ASSERT(whole.replies == pieces.replies);
  });
  EXPECT_TRUE(holds);
}

Execution execution_of_line(std::string_view line) {
  std::optional<Execution> execution;
  MemcachedReplyParser parser;
  EXPECT_TRUE(parser.feed(line, [&](const MemcachedReply& reply) {
    execution = execution_of(reply);
    return true;
  }));
  return execution.value();
}

TEST(MemcachedReply, only_what_is_known_not_to_have_run_counts_as_not_executed) {
  EXPECT_EQ(execution_of_line("STORED\r\n"), Execution::kExecuted);
  EXPECT_EQ(execution_of_line("12\r\n"), Execution::kExecuted);
  for (const char* line :
       {"NOT_STORED\r\n", "NOT_FOUND\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        "SERVER_ERROR out of memory\r\n", "SERVER_ERROR out of memory storing object\r\n",
        "SERVER_ERROR out of memory in incr\r\n", "SERVER_ERROR Connection refused\r\n"}) {
    EXPECT_EQ(execution_of_line(line), Execution::kNotExecuted) << line;
  }
  for (const char* line : {"SERVER_ERROR Connection timed out\r\n", "SERVER_ERROR Connection reset by peer\r\n",
                           "SERVER_ERROR out of memory preparing response\r\n", "SERVER_ERROR \r\n", "ERROR\r\n"}) {
    EXPECT_EQ(execution_of_line(line), Execution::kUncertain) << line;
  }
}

}  // namespace
}  // namespace popgate
