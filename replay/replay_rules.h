// SPDX-License-Identifier: Apache-2.0
//
// Where a replay's rules come from: popgated's own configuration file, or quick ones from the command line.
//
// Threads: pure but for reading the file.
#pragma once

#include <string>
#include <vector>

#include "daemon/result.h"
#include "daemon/rules.h"

namespace popgate {

struct ReplayRules {
  std::vector<Rule> rules;
  microseconds flush_interval{0};
  std::uint32_t keys_max = 0;
};

/// The file's hash secret is not read: keys of a replay never leave it. The error has every fault, a line each.
[[nodiscard]] Result<ReplayRules> rules_of_config(const std::string& path);

/// Each `LIMIT/WINDOW[/MITIGATE]`, by client address; without MITIGATE as long as the window.
[[nodiscard]] Result<ReplayRules> quick_rules(const std::vector<std::string>& texts);

}  // namespace popgate
