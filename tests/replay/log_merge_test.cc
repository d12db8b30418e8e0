// SPDX-License-Identifier: Apache-2.0
#include "replay/log_merge.h"

#include <gtest/gtest.h>

#include "replay/second_spread.h"
#include "tests/replay/temporary_file.h"

namespace popgate {
namespace {

// 10/Oct/2000:10:00:00 +0000 plus `second`.
std::string line_at(int second, const std::string& path, const std::string& client = "192.0.2.1") {
  char time[64];
  std::snprintf(time, sizeof time, "10/Oct/2000:10:%02d:%02d +0000", second / 60, second % 60);
  return client + " - - [" + time + "] \"GET " + path + " HTTP/1.1\" 200 5 \"http://r.example/\" \"agent/1\"\n";
}

std::unique_ptr<MergedLogs> open_logs(const std::vector<std::string>& files, std::size_t reorder = kReorderRecords) {
  MergeOptions options;
  options.reorder_records = reorder;
  options.default_host = "default.example";
  auto logs = MergedLogs::open(files, options);
  EXPECT_TRUE(logs.ok()) << logs.error();
  return *std::move(logs);
}

std::string paths_of(RequestSource& source) {
  std::string paths;
  LoggedRequest request;
  PopInstant before = PopInstant::min();
  while (source.next(request)) {
    EXPECT_GE(request.time, before);
    before = request.time;
    paths += request.path;
  }
  return paths;
}

TEST(MergedLogs, file_out_of_order_is_sorted_and_equal_times_keep_their_order) {
  const TemporaryFile file(line_at(5, "/c") + line_at(1, "/a") + line_at(5, "/d") + line_at(3, "/b"));
  EXPECT_EQ(paths_of(*open_logs({file.path()})), "/a/b/c/d");
}

TEST(MergedLogs, several_files_are_merged_and_equal_times_go_by_the_order_of_the_files) {
  const TemporaryFile one(line_at(1, "/1a") + line_at(3, "/1b") + line_at(9, "/1c"));
  const TemporaryFile two(line_at(2, "/2a") + line_at(3, "/2b") + line_at(4, "/2c"));
  EXPECT_EQ(paths_of(*open_logs({one.path(), two.path()})), "/1a/2a/1b/2b/2c/1c");
}

TEST(MergedLogs, record_that_comes_later_than_the_buffer_reaches_is_left_out_and_counted) {
  const TemporaryFile file(line_at(10, "/a") + line_at(20, "/b") + line_at(5, "/late") + line_at(30, "/c"));
  const auto logs = open_logs({file.path()}, 1);
  EXPECT_EQ(paths_of(*logs), "/a/b/c");
  EXPECT_EQ(logs->too_late(), 1u);
  const auto enough = open_logs({file.path()}, 3);
  EXPECT_EQ(paths_of(*enough), "/late/a/b/c");
  EXPECT_EQ(enough->too_late(), 0u);
}

TEST(MergedLogs, request_carries_what_the_line_says) {
  const TemporaryFile file(
      "w.example:8443 [2001:db8::1]:443 - - [10/Oct/2000:10:00:00 +0000] \"GET /a\\\"b\\x41?q HTTP/1.1\" "
      "200 5 \"http://r.example/\" \"agent/1\"\n");
  const auto logs = open_logs({file.path()});
  LoggedRequest logged;
  ASSERT_TRUE(logs->next(logged));
  const Request request = request_of(logged);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.host, "w.example:8443");
  EXPECT_EQ(request.path, "/a\"bA?q");
  EXPECT_EQ(request.client.bytes, 16);
  EXPECT_EQ(request.client.octets[15], 1);
  std::string_view value;
  EXPECT_TRUE(request.header(request.header_context, "user-agent", value));
  EXPECT_EQ(value, "agent/1");
  EXPECT_TRUE(request.header(request.header_context, "referer", value));
  EXPECT_EQ(value, "http://r.example/");
  EXPECT_FALSE(request.header(request.header_context, "x-api-key", value));
}

TEST(MergedLogs, log_without_virtual_host_gets_the_default_one) {
  const TemporaryFile file(line_at(0, "/"));
  const auto logs = open_logs({file.path()});
  LoggedRequest logged;
  ASSERT_TRUE(logs->next(logged));
  EXPECT_EQ(logged.host, "default.example");
}

TEST(MergedLogs, every_file_that_cannot_be_opened_is_named) {
  const TemporaryFile file(line_at(0, "/"));
  const auto logs = MergedLogs::open({"/nonexistent/a", file.path(), "/nonexistent/b"}, {});
  ASSERT_FALSE(logs.ok());
  EXPECT_NE(logs.error().find("/nonexistent/a"), std::string::npos);
  EXPECT_NE(logs.error().find("/nonexistent/b"), std::string::npos);
}

TEST(SecondSpread, requests_of_one_second_are_spread_over_it_in_their_order) {
  const TemporaryFile file(line_at(0, "/a") + line_at(0, "/b") + line_at(0, "/c") + line_at(0, "/d") +
                           line_at(1, "/e"));
  const auto logs = open_logs({file.path()});
  SecondSpread spread(*logs);
  LoggedRequest request;
  std::vector<std::int64_t> offsets;
  std::string paths;
  PopInstant first{};
  while (spread.next(request)) {
    if (offsets.empty()) first = request.time;
    offsets.push_back((request.time - first).count());
    paths += request.path;
  }
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 250'000, 500'000, 750'000, 1'000'000}));
  EXPECT_EQ(paths, "/a/b/c/d/e");
}

TEST(SecondSpread, times_with_a_fraction_are_left_alone) {
  const std::string line = "192.0.2.1 - - [10/Oct/2000:10:00:00.25 +0000] \"GET / HTTP/1.1\" 200 5\n";
  const TemporaryFile file(line + line);
  const auto logs = open_logs({file.path()});
  SecondSpread spread(*logs);
  LoggedRequest request;
  while (spread.next(request)) EXPECT_EQ(request.time.time_since_epoch().count() % 1'000'000, 250'000);
}

}  // namespace
}  // namespace popgate
