// SPDX-License-Identifier: Apache-2.0
#include "tests/process/agreement.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

namespace popgate::process {
namespace {

// What two copies of one entry have in common; what remains of it differs from moment to moment.
std::set<std::string> entries_of(const Node& node) {
  std::set<std::string> entries;
  const nlohmann::json answer = node.get("/mitigations?limit=10000");
  for (const nlohmann::json& entry : answer["mitigations"]) {
    entries.insert(entry["key"].get<std::string>() + " " + entry["kind"].get<std::string>() + " " +
                   entry["version"].dump());
  }
  return entries;
}

}  // namespace

std::string disagreement(Pop& pop) {
  const std::set<std::string> first = entries_of(pop.node(0));
  for (std::size_t i = 1; i < pop.nodes(); ++i) {
    const std::set<std::string> other = entries_of(pop.node(i));
    std::vector<std::string> differing;
    std::set_symmetric_difference(first.begin(), first.end(), other.begin(), other.end(),
                                  std::back_inserter(differing));
    if (!differing.empty()) {
      return std::to_string(differing.size()) + " entries between " + pop.node(0).name() + " and " +
             pop.node(i).name() + ": " + differing.front();
    }
  }
  return "";
}

std::chrono::milliseconds time_to_agree(Pop& pop, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  if (!eventually([&] { return disagreement(pop).empty(); }, deadline)) return std::chrono::milliseconds(-1);
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

}  // namespace popgate::process
