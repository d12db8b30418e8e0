// SPDX-License-Identifier: Apache-2.0
#include "replay/access_log.h"

#include <gtest/gtest.h>

#include "replay/log_statistics.h"
#include "replay/log_time.h"
#include "tests/replay/temporary_file.h"

namespace popgate {
namespace {

// Six records of three clients, a step back, a blank line, a comment, two lines that are none, a bad request.
constexpr const char* kMixed =
    "192.0.2.1 - - [10/Oct/2000:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 5\n"
    "192.0.2.1 - - [10/Oct/2000:10:00:00 +0000] \"GET /b HTTP/1.1\" 200 5\n"
    "\n"
    "# a comment\n"
    "192.0.2.1 - - [10/Oct/2000:10:00:01 +0000] \"\\x16\\x03\" 400 5\n"
    "hello\n"
    "Host.Example - - [10/Oct/2000:12:30:00 +0200] \"GET / HTTP/1.1\" 200 5\n"
    "host.example - - [10/Oct/2000:10:29:59 +0000] \"GET / HTTP/1.1\" 200 5\n"
    "192.0.2.9 - - [10/Oct/2000:10:30:00] \"GET / HTTP/1.1\" 200 5\n"
    "[2001:db8::1]:443 - - [10/Oct/2000:10:59:59 +0000] \"GET / HTTP/1.1\" 200 5";

TEST(AccessLog, every_line_is_accounted_for) {
  const TemporaryFile file(kMixed);
  auto log = AccessLog::open(file.path(), std::nullopt);
  ASSERT_TRUE(log.ok()) << log.error();
  AccessRecord record;
  std::vector<std::uint64_t> lines;
  while ((*log)->next(record)) lines.push_back((*log)->line_number());
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 2, 5, 7, 8, 10}));
  const LineCounts& counts = (*log)->counts();
  EXPECT_EQ(counts.lines, 10u);
  EXPECT_EQ(counts.blank, 1u);
  EXPECT_EQ(counts.comment, 1u);
  EXPECT_EQ(counts.records, 6u);
  EXPECT_EQ(counts.unparsable, 2u);
  EXPECT_EQ(counts.request_bad, 1u);
  EXPECT_EQ(counts.lenient, 0u);
}

TEST(AccessLog, first_unparsable_lines_are_kept_with_file_line_and_reason) {
  const TemporaryFile file(kMixed);
  auto log = AccessLog::open(file.path(), std::nullopt);
  ASSERT_TRUE(log.ok());
  AccessRecord record;
  while ((*log)->next(record)) {
  }
  ASSERT_EQ((*log)->samples().size(), 2u);
  EXPECT_EQ((*log)->samples()[0].shown().find(file.path() + ":6: no time between brackets"), 0u);
  EXPECT_NE((*log)->samples()[1].shown().find(":9: the time has no zone offset"), std::string::npos);
}

TEST(AccessLog, unparsable_lines_beyond_the_first_ones_are_only_counted) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "nothing\n";
  const TemporaryFile file(text);
  auto log = AccessLog::open(file.path(), std::nullopt);
  ASSERT_TRUE(log.ok());
  AccessRecord record;
  EXPECT_FALSE((*log)->next(record));
  EXPECT_EQ((*log)->counts().unparsable, 100u);
  EXPECT_EQ((*log)->samples().size(), kSamplesMax);
}

TEST(AccessLog, format_is_that_of_most_lines_and_can_be_forced) {
  const char* const vhost = "w.example 192.0.2.1 - - [10/Oct/2000:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n";
  const char* const plain = "192.0.2.1 - - [10/Oct/2000:10:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n";
  const TemporaryFile file(std::string(vhost) + vhost + plain);
  auto log = AccessLog::open(file.path(), std::nullopt);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ((*log)->format(), LogFormat::kVhost);
  AccessRecord record;
  while ((*log)->next(record)) {
  }
  EXPECT_EQ((*log)->counts().lenient, 1u);
  auto forced = AccessLog::open(file.path(), LogFormat::kCombined);
  ASSERT_TRUE(forced.ok());
  while ((*forced)->next(record)) {
  }
  EXPECT_EQ((*forced)->counts().lenient, 2u);
}

TEST(LogStatistics, figures_of_a_small_log_are_those_counted_by_hand) {
  const TemporaryFile file(kMixed);
  std::vector<LineSample> samples;
  std::vector<std::string> problems;
  const auto rows = log_figures({file.path()}, std::nullopt, samples, problems);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].clients, 3u);  // 192.0.2.1, host.example in two spellings, 2001:db8::1
  EXPECT_EQ(log_time_text(*rows[0].first), "2000-10-10T10:00:00Z");
  EXPECT_EQ(log_time_text(*rows[0].last), "2000-10-10T10:59:59Z");
  EXPECT_EQ(rows[0].steps_back, 1u);
  EXPECT_EQ(rows[0].peaks[0], 2u);  // 10:00:00 twice; 10:00:01 is a second later, outside the half-open window
  EXPECT_EQ(rows[0].peaks[1], 3u);
  EXPECT_EQ(rows[0].peaks[2], 3u);
  EXPECT_TRUE(problems.empty());
}

TEST(LogStatistics, several_files_get_a_row_each_and_one_over_all) {
  const TemporaryFile one(kMixed);
  const TemporaryFile two(kMixed);
  std::vector<LineSample> samples;
  std::vector<std::string> problems;
  const auto rows = log_figures({one.path(), "/nonexistent/x.log", two.path()}, std::nullopt, samples, problems);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].name, "all");
  EXPECT_EQ(rows[2].counts.records, 12u);
  EXPECT_EQ(rows[2].clients, 3u);
  EXPECT_EQ(rows[2].steps_back, 2u) << "the start of the next file is no step back";
  EXPECT_EQ(rows[2].peaks[0], 4u);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("/nonexistent/x.log"), std::string::npos);
}

}  // namespace
}  // namespace popgate
