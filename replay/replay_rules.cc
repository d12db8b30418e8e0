// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_rules.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "daemon/config.h"

namespace popgate {
namespace {

Result<ReplayRules> read(const std::string& text, const std::string& name) {
  ConfigOutcome outcome = parse_config(text, name);
  if (!outcome.config) {
    std::string faults;
    for (const ConfigFault& fault : outcome.faults) faults += (faults.empty() ? "" : "\n") + fault.text();
    return Error{faults};
  }
  if (outcome.config->rules.all().empty()) return Error{name + ": there are no rules in it, so nothing to replay for"};
  return ReplayRules{outcome.config->rules.all(), outcome.config->flush_interval, outcome.config->keys_max};
}

}  // namespace

Result<ReplayRules> rules_of_config(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return Error{path + ": cannot be read: " + std::strerror(errno)};
  return read(text.str(), path);
}

Result<ReplayRules> quick_rules(const std::vector<std::string>& texts) {
  std::string yaml = "rules:\n";
  for (const std::string& text : texts) {
    const std::size_t first = text.find('/');
    const std::size_t second = text.find('/', first == std::string::npos ? first : first + 1);
    // What stands in the parts is checked as in a file; only what would be another part must not be in one.
    if (first == std::string::npos || text.find_first_not_of("0123456789/abcdefghijklmnopqrstuvwxyz") != text.npos) {
      return Error{"--rule: found \"" + text + "\", allowed: LIMIT/WINDOW[/MITIGATE], as in 100/60s/5m"};
    }
    const std::string limit = text.substr(0, first);
    const std::string window = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
    const std::string mitigate = second == std::string::npos ? window : text.substr(second + 1);
    yaml.append("  - {name: ").append(limit).append("-in-").append(window);
    yaml.append(", key: [client_ip], limit: ").append(limit).append(", window: ").append(window);
    yaml.append(", mitigate: ").append(mitigate).append("}\n");
  }
  return read(yaml, "--rule");
}

}  // namespace popgate
