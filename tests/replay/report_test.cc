// SPDX-License-Identifier: Apache-2.0
#include "replay/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace popgate {
namespace {

Report small_report() {
  Report report;
  report.mode = "offline";
  report.nodes = 2;
  report.requests = 200;
  report.requests_matched = 100;
  report.hits = 90;
  report.clients = 8;
  report.clients_blocked = 2;
  report.clients_blocked_by_node = {2, 1};
  report.requests_blocked_by_node = {6, 4};
  report.blocked = 10;
  report.wrongly_blocked = 1;
  report.wrongly_passed = 2;
  report.ideal_blocked = 12;
  report.passed_but_ideal_blocks = 3;
  report.blocked_but_ideal_passes = 1;
  report.time_to_decision_s.add(0.02);
  report.time_to_decision_s.add(0.04);
  RuleReport rule;
  rule.name = "login";
  rule.limit = 10;
  rule.window_s = 60;
  rule.mitigate_s = 600;
  rule.overshoot.add(1);
  rule.overshoot.add(3);
  report.rules.push_back(rule);
  return report;
}

TEST(Report, shares_are_parts_of_all_requests) {
  EXPECT_DOUBLE_EQ(small_report().wrong_share(), 3.0 / 200);
  EXPECT_DOUBLE_EQ(small_report().ideal_difference_share(), 4.0 / 200);
  EXPECT_DOUBLE_EQ(Report().wrong_share(), 0);
}

TEST(Report, table_says_every_figure_with_its_label) {
  const std::string table = report_table(small_report());
  for (const char* line : {"offline replay on 2 nodes\n", "  requests                                     200\n",
                           "  requests blocked                             10 (5.0000 %)\n",
                           "    wrongly blocked                            1 (0.5000 %)\n",
                           "    wrongly passed                             2 (1.0000 %)\n",
                           "  wrong decisions of all                       1.5000 %\n",
                           "  clients blocked                              2 (25.0000 %)\n",
                           "    clients blocked, node by node              2 1\n",
                           "  crossing to decision, seconds                p50 0.02, p99 0.04, max 0.04 (2)\n",
                           "  crossing to enforced on every node, seconds  none\n", "  1/3/3\n"}) {
    EXPECT_NE(table.find(line), std::string::npos) << line << "\nin\n" << table;
  }
}

TEST(Report, json_reads_back_with_the_same_figures) {
  const nlohmann::json json = nlohmann::json::parse(report_json(small_report()));
  EXPECT_EQ(json["requests"], 200);
  EXPECT_EQ(json["wrong_share"], 0.015);
  EXPECT_EQ(json["time_to_decision_s"]["p50"], 0.02);
  EXPECT_EQ(json["rules"][0]["name"], "login");
  EXPECT_EQ(json["rules"][0]["overshoot"]["p99"], 3);
  EXPECT_FALSE(json.contains("live"));
}

TEST(Report, name_that_is_no_utf8_does_not_end_the_program) {
  Report report = small_report();
  report.rules[0].name = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(report_json(report)));
}

}  // namespace
}  // namespace popgate
