// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "daemon/config.h"

namespace popgate {
namespace {

constexpr std::string_view kBegin = "<!-- options: made by popgated --print-options -->\n";
constexpr std::string_view kEnd = "<!-- end of options -->\n";

std::string read_manual() {
  std::ifstream file(POPGATE_SOURCE_DIR "/docs/configuration.md");
  std::ostringstream stream;
  stream << file.rdbuf();
  return stream.str();
}

TEST(ConfigOptions, every_example_of_the_manual_is_a_right_configuration) {
  const std::string manual = read_manual();
  const std::string fence = "```yaml\n";
  int examples = 0;
  for (std::size_t at = manual.find(fence); at != std::string::npos; at = manual.find(fence, at)) {
    at += fence.size();
    const auto outcome = parse_config(manual.substr(at, manual.find("```", at) - at), "example");
    EXPECT_TRUE(outcome.config.has_value()) << outcome.faults.at(0).text();
    ++examples;
  }
  EXPECT_EQ(examples, 2);
}

TEST(ConfigOptions, the_manual_has_the_table_that_the_binary_prints) {
  const std::string manual = read_manual();
  const std::size_t begin = manual.find(kBegin);
  const std::size_t end = manual.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(manual.substr(begin + kBegin.size(), end - begin - kBegin.size()), options_reference())
      << "run: popgated --print-options, and put the table between the marks of docs/configuration.md";
}

TEST(ConfigOptions, every_option_has_a_name_of_its_own_and_a_meaning) {
  std::set<std::string_view> names;
  for (const Option& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.meaning.empty()) << option.name;
    EXPECT_FALSE(allowed_text(option).empty()) << option.name;
    EXPECT_LE(option.least, option.most) << option.name;
  }
}

std::string standard(std::string_view name) {
  for (const Option& option : options()) {
    if (option.name == name) return std::string(option.standard);
  }
  return "no such option";
}

// A file that writes out every default of the table is the same configuration as an empty one.
TEST(ConfigOptions, the_defaults_of_the_table_are_those_of_the_reader) {
  std::string text;
  for (const char* name : {"node", "pop", "run_dir", "state_dir", "worker_socket_mode", "log_level", "flush_interval",
                           "clock_tolerance", "table_entries", "keys_max", "workers_max"}) {
    text += std::string(name) + ": " + standard(name) + "\n";
  }
  text += "hash_secret_file: /s\ncounters:\n  shards:\n    - {name: a, address: \"h:1\", weight: " +
          standard("counters.shards[].weight") + "}\n";
  for (const char* name : {"timeout", "batches_in_flight", "batch_keys_max"})
    text += std::string("  ") + name + ": " + standard(std::string("counters.") + name) + "\n";
  text += "rules:\n  - name: r\n    limit: 5\n    window: 9s\n    mitigate: 9s\n    key: [{client_ip: {v4_prefix: " +
          standard("rules[].key[].client_ip.v4_prefix") +
          ", v6_prefix: " + standard("rules[].key[].client_ip.v6_prefix") + "}}]\n";
  for (const char* name : {"slots", "action", "count", "cost", "policy", "enabled"})
    text += std::string("    ") + name + ": " + standard(std::string("rules[].") + name) + "\n";
  const auto written = parse_config(text, "f");
  ASSERT_TRUE(written.config.has_value()) << written.faults.at(0).text();
  const auto left_out = parse_config(
      "hash_secret_file: /s\ncounters:\n  shards:\n    - {name: a, address: \"h:1\"}\n"
      "rules:\n  - {name: r, limit: 5, window: 9s, mitigate: 9s, key: [client_ip]}\n",
      "f");
  ASSERT_TRUE(left_out.config.has_value());
  const Config& a = *written.config;
  const Config& b = *left_out.config;
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.pop, b.pop);
  EXPECT_EQ(a.run_dir, b.run_dir);
  EXPECT_EQ(a.state_dir, b.state_dir);
  EXPECT_EQ(a.worker_socket_mode, b.worker_socket_mode);
  EXPECT_EQ(a.log_level, b.log_level);
  EXPECT_EQ(a.flush_interval, b.flush_interval);
  EXPECT_EQ(a.clock_tolerance, b.clock_tolerance);
  EXPECT_EQ(a.table_entries, b.table_entries);
  EXPECT_EQ(a.keys_max, b.keys_max);
  EXPECT_EQ(a.workers_max, b.workers_max);
  EXPECT_EQ(a.counters->shards, b.counters->shards);
  EXPECT_EQ(a.counters->timeout, b.counters->timeout);
  EXPECT_EQ(a.counters->batches_in_flight, b.counters->batches_in_flight);
  EXPECT_EQ(a.counters->batch_keys_max, b.counters->batch_keys_max);
  EXPECT_EQ(a.rules.revision(), b.rules.revision());
  EXPECT_EQ("run_dir/workers.sock", standard("worker_socket"));
  EXPECT_EQ(b.worker_socket, b.run_dir + "/workers.sock");
  EXPECT_EQ("run_dir/admin.sock", standard("admin_socket"));
  EXPECT_EQ(b.admin_socket, b.run_dir + "/admin.sock");
}

}  // namespace
}  // namespace popgate
