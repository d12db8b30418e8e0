// SPDX-License-Identifier: Apache-2.0
//
// Every figure that a running daemon exports: its name follows one convention, and docs/operations.md has it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "daemon/prometheus.h"
#include "tests/process/pop.h"

namespace popgate::process {
namespace {

constexpr char kRules[] =
    "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h, max_blocked_share: 30}\n";

struct Described {
  std::string type;
  std::string meaning;
};
using Reference = std::map<std::string, Described>;

void read_metrics(const Node& node, Reference& reference) {
  std::istringstream lines(ask_admin(node.admin_socket(), "GET", "/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    std::string name;
    words >> hash >> kind >> name >> std::ws;
    std::string rest;
    std::getline(words, rest);
    if (kind == "HELP") reference[name].meaning = rest;
    if (kind == "TYPE") reference[name].type = rest;
  }
}

std::string row_of(const std::string& name, const Described& one) {
  return "| `" + name + "` | " + one.type + " | " + one.meaning + " |";
}

Reference of_every_kind_of_node() {
  Reference reference;
  Pop mesh({.nodes = 2, .shards = 1, .proxy = false, .rules = kRules, .tls = true});
  Worker worker(mesh.node(0));
  EXPECT_TRUE(worker.attach());
  EXPECT_TRUE(eventually([&] { return mesh.node(0).ready(); }));
  EXPECT_TRUE(eventually([&] {
    read_metrics(mesh.node(0), reference);
    return reference.contains("popgate_peers_peer_certificate_left_seconds");  // known with its first heartbeat
  }));
  Pop alone({.nodes = 1, .shards = 0, .proxy = false, .rules = kRules});
  read_metrics(alone.node(0), reference);
  return reference;
}

TEST(PopMetrics, every_name_follows_the_convention_and_the_manual_has_every_one) {
  const Reference reference = of_every_kind_of_node();
  ASSERT_GT(reference.size(), 100U);
  std::ifstream manual(POPGATE_SOURCE_DIR "/docs/operations.md");
  std::set<std::string> rows;
  for (std::string line; std::getline(manual, line);) rows.insert(line);
  std::string missing;
  for (const auto& [name, one] : reference) {
    EXPECT_EQ(name_fault(name, one.type == "counter"), "") << name;
    if (!rows.contains(row_of(name, one))) missing += row_of(name, one) + "\n";
  }
  EXPECT_EQ(missing, "") << "docs/operations.md, section Metrics, lacks these lines or has others of the name";
}

}  // namespace
}  // namespace popgate::process
