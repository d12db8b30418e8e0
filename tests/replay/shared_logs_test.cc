// SPDX-License-Identifier: Apache-2.0
//
// Real access logs with the counts that an independent counter found (EXPECTED.json). The logs are not part of the
// project: they are looked for beside the checkout (../shared/logs/dev), or where POPGATE_LOGS points. Without them the
// tests are skipped by name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "replay/log_statistics.h"
#include "replay/log_time.h"

namespace popgate {
namespace {

namespace fs = std::filesystem;

fs::path logs_folder() {
  if (const char* given = std::getenv("POPGATE_LOGS")) {
    const fs::path folder = given;
    return fs::exists(folder / "dev" / "EXPECTED.json") ? folder / "dev" : folder;
  }
  return fs::path(POPGATE_SOURCE_DIR) / ".." / "shared" / "logs" / "dev";
}

std::vector<nlohmann::json> expected_rows() {
  std::ifstream file(logs_folder() / "EXPECTED.json");
  if (!file) return {};
  std::vector<nlohmann::json> rows;
  for (const nlohmann::json& row : nlohmann::json::parse(file)) {
    if (row["format"] == "combined" || row["format"] == "vhost") rows.push_back(row);
  }
  return rows;
}

std::string time_text(const nlohmann::json& row, const char* field) { return row.value(field, std::string("-")); }

void compare(const nlohmann::json& row, const LogFigures& found) {
  EXPECT_EQ(found.counts.lines, row["lines"]);
  EXPECT_EQ(found.counts.blank, row["blank"]);
  EXPECT_EQ(found.counts.comment, row["comment"]);
  EXPECT_EQ(found.counts.records, row["records"]);
  EXPECT_EQ(found.counts.lenient, row["lenient"]);
  EXPECT_EQ(found.counts.unparsable, row["unparsable"]);
  EXPECT_EQ(found.counts.request_bad, row["request_bad"]);
  EXPECT_EQ(found.clients, row["clients"]);
  EXPECT_EQ(found.steps_back, row["out_of_order"]);
  EXPECT_EQ(found.first ? log_time_text(*found.first) : "-", time_text(row, "first"));
  EXPECT_EQ(found.last ? log_time_text(*found.last) : "-", time_text(row, "last"));
  EXPECT_EQ(found.peaks[0], row["peak_1s"].get<std::uint64_t>());
  EXPECT_EQ(found.peaks[1], row["peak_60s"].get<std::uint64_t>());
  EXPECT_EQ(found.peaks[2], row["peak_3600s"].get<std::uint64_t>());
}

TEST(SharedLogs, every_common_and_combined_log_has_the_figures_of_the_independent_counter) {
  const std::vector<nlohmann::json> rows = expected_rows();
  if (rows.empty()) GTEST_SKIP() << "no access logs at " << logs_folder() << "; set POPGATE_LOGS to their folder";
  for (const nlohmann::json& row : rows) {
    const std::string file = row["file"];
    SCOPED_TRACE(file);
    std::vector<LineSample> samples;
    std::vector<std::string> problems;
    const std::vector<LogFigures> found = log_figures({logs_folder() / file}, std::nullopt, samples, problems);
    ASSERT_EQ(found.size(), 1u) << (problems.empty() ? "" : problems[0]);
    EXPECT_TRUE(problems.empty());
    EXPECT_EQ(found[0].format, row["format"]) << "the format is found out";
    compare(row, found[0]);
  }
}

// Line numbers, not only how many.
void compare_lines(const nlohmann::json& row, AccessLog& log) {
  std::vector<std::uint64_t> bad;
  std::map<std::string, std::uint64_t> statuses;
  std::set<std::uint64_t> lenient;
  AccessRecord record;
  while (log.next(record)) {
    if (record.request_bad) bad.push_back(log.line_number());
    if (record.lenient_why != nullptr) lenient.insert(log.line_number());
    if (record.status != "-") ++statuses[std::string(record.status)];
  }
  std::set<std::uint64_t> expected_lenient;
  for (const auto& why : row["lenient_why"]) {
    for (const std::uint64_t line : why[1]) expected_lenient.insert(line);
  }
  EXPECT_EQ(bad, row["request_bad_line_numbers"].get<std::vector<std::uint64_t>>());
  EXPECT_EQ(lenient, expected_lenient);
  std::map<std::string, std::uint64_t> expected_statuses = row["status"];
  std::erase_if(expected_statuses, [](const auto& status) { return status.first[0] == '-'; });
  EXPECT_EQ(statuses, expected_statuses);
  const std::vector<std::uint64_t> unparsable = row["unparsable_line_numbers"];
  for (std::size_t i = 0; i < log.samples().size(); ++i) EXPECT_EQ(log.samples()[i].line, unparsable[i]);
}

TEST(SharedLogs, doubtful_lines_are_the_lines_that_the_independent_counter_names) {
  const std::vector<nlohmann::json> rows = expected_rows();
  if (rows.empty()) GTEST_SKIP() << "no access logs at " << logs_folder() << "; set POPGATE_LOGS to their folder";
  for (const nlohmann::json& row : rows) {
    const std::string file = row["file"];
    SCOPED_TRACE(file);
    auto log = AccessLog::open(logs_folder() / file, std::nullopt);
    ASSERT_TRUE(log.ok()) << log.error();
    compare_lines(row, **log);
  }
}

}  // namespace
}  // namespace popgate
