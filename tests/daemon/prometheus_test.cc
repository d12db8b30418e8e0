// SPDX-License-Identifier: Apache-2.0
#include "daemon/prometheus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace popgate {
namespace {

std::string text_of(std::initializer_list<Metric> metrics) {
  PrometheusText text;
  const MetricVisitor visitor = text.visitor();
  for (const Metric& metric : metrics) visitor(metric);
  return text.text();
}

TEST(PrometheusText, counter_and_gauge_have_their_help_type_and_unit) {
  EXPECT_EQ(text_of({{"popgate_a_hits", "hits", "Hits.", 7, true, "", ""},
                     {"popgate_b_up", "", "1 when it is up.", 1, false, "", ""}}),
            "# HELP popgate_a_hits_total Hits. (hits)\n"
            "# TYPE popgate_a_hits_total counter\n"
            "popgate_a_hits_total 7\n"
            "# HELP popgate_b_up 1 when it is up.\n"
            "# TYPE popgate_b_up gauge\n"
            "popgate_b_up 1\n");
}

TEST(PrometheusText, samples_of_one_name_stand_together_under_one_help) {
  EXPECT_EQ(text_of({{"x", "", "X.", 1, true, "shard", "a"},
                     {"y", "", "Y.", 2, true, "shard", "a"},
                     {"x", "", "X.", 3, true, "shard", "b"},
                     {"y", "", "Y.", 4, true, "shard", "b"}}),
            "# HELP x_total X.\n# TYPE x_total counter\nx_total{shard=\"a\"} 1\nx_total{shard=\"b\"} 3\n"
            "# HELP y_total Y.\n# TYPE y_total counter\ny_total{shard=\"a\"} 2\ny_total{shard=\"b\"} 4\n");
}

TEST(PrometheusText, names_are_noun_unit_and_total_whatever_a_stage_calls_them) {
  const auto name = [](std::string_view given, std::string_view unit, bool rises) {
    return exported_name({given, unit, "", 0, rises, "", ""});
  };
  EXPECT_EQ(name("popgate_a_sent", "bytes", true), "popgate_a_sent_bytes_total");
  EXPECT_EQ(name("popgate_a_sent_bytes_total", "bytes", true), "popgate_a_sent_bytes_total");
  EXPECT_EQ(name("popgate_a_ended_total", "entries", true), "popgate_a_ended_total");
  EXPECT_EQ(name("popgate_a_rtt", "seconds", false), "popgate_a_rtt_seconds");
  EXPECT_EQ(name("popgate_a_up", "", false), "popgate_a_up");
}

TEST(PrometheusText, a_name_that_breaks_the_convention_is_told) {
  EXPECT_EQ(name_fault("popgate_a_hits_total", true), "");
  EXPECT_EQ(name_fault("popgate_a_up", false), "");
  EXPECT_NE(name_fault("popgate_a_hits_total", false), "");
  EXPECT_NE(name_fault("popgate_a_hits", true), "");
  EXPECT_NE(name_fault("popgate_A", false), "");
  EXPECT_NE(name_fault("a_hits_total", true), "");
}

TEST(PrometheusText, label_values_and_help_are_escaped) {
  EXPECT_EQ(text_of({{"x", "", "a\\b\n\"c\"", 1, false, "rule", "a\\b\n\"c\""}}),
            "# HELP x a\\\\b\\n\"c\"\n# TYPE x gauge\nx{rule=\"a\\\\b\\n\\\"c\\\"\"} 1\n");
}

TEST(PrometheusText, numbers_read_back_exactly) {
  const auto number = [](double value) {
    const std::string text = text_of({{"x", "", "", value, false, "", ""}});
    const std::string last = text.substr(text.rfind("x ") + 2);
    return last.substr(0, last.size() - 1);
  };
  EXPECT_EQ(std::stod(number(0.1)), 0.1);
  EXPECT_EQ(std::stod(number(9007199254740991.0)), 9007199254740991.0);
  EXPECT_EQ(std::stod(number(1e-300)), 1e-300);
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "-Inf");
  EXPECT_EQ(number(std::nan("")), "NaN");
}

TEST(PrometheusText, name_that_the_format_does_not_allow_is_a_bug) {
  EXPECT_DEATH(text_of({{"popgate-x", "", "", 1, true, "", ""}}), "assertion failed");
  EXPECT_DEATH(text_of({{"x", "", "", 1, true, "a b", ""}}), "assertion failed");
}

}  // namespace
}  // namespace popgate
