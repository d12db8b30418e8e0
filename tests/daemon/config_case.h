// SPDX-License-Identifier: Apache-2.0
//
// What tests of the configuration say in one word: a text that is good, its faults, its one fault.
//
// Threads: the test's.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/config.h"

namespace popgate {

inline std::string faults_text(const ConfigOutcome& outcome) {
  std::string text;
  for (const ConfigFault& fault : outcome.faults) text += fault.text() + "\n";
  return text;
}

inline Config good(const std::string& text) {
  ConfigOutcome outcome = parse_config(text, "popgate.yaml");
  EXPECT_TRUE(outcome.config.has_value()) << faults_text(outcome);
  EXPECT_THAT(outcome.faults, testing::IsEmpty());
  return outcome.config.value_or(Config{});
}

/// Where and what: "2:10 rules[0].limit".
inline std::vector<std::string> faults(const std::string& text) {
  const ConfigOutcome outcome = parse_config(text, "popgate.yaml");
  EXPECT_EQ(outcome.config.has_value(), outcome.faults.empty());
  std::vector<std::string> places;
  for (const ConfigFault& fault : outcome.faults)
    places.push_back(std::to_string(fault.line) + ":" + std::to_string(fault.column) + " " + fault.field);
  return places;
}

/// The one fault of a text, whole.
inline std::string fault(const std::string& text) {
  const ConfigOutcome outcome = parse_config(text, "f");
  EXPECT_EQ(outcome.faults.size(), 1U) << faults_text(outcome);
  return outcome.faults.empty() ? "none" : outcome.faults.front().text();
}

/// A rule that is right but for what is added to it, each on a line of its own from line 6 on, at column 5.
inline std::string rule_with(const std::string& lines) {
  return "rules:\n  - name: r\n    key: [client_ip]\n    limit: 10\n    window: 60s\n" + lines;
}
inline const std::string kMitigate = "    mitigate: 60s\n";

}  // namespace popgate
