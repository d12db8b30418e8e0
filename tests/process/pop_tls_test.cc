// SPDX-License-Identifier: Apache-2.0
// A PoP whose mesh speaks TLS: it works, and its certificates are renewed while it does.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process/pop.h"

namespace popgate::process {
namespace {

using nlohmann::json;

constexpr char kRules[] = "  - {name: all, key: [client_ip], limit: 20, window: 1h, mitigate: 1h}\n";

class PopTls : public ::testing::Test {
 protected:
  PopTls() {
    for (std::size_t i = 0; i < pop_.nodes(); ++i) workers_.push_back(std::make_unique<Worker>(pop_.node(i)));
    for (const auto& worker : workers_) EXPECT_TRUE(worker->attach());
  }
  /// An operator's block on one node reaches the workers of all.
  void expect_block_spreads(std::size_t from, const std::string& client) {
    (void)pop_.node(from).post("/block",
                               {{"rule", "all"}, {"values", {client}}, {"for_ms", 60000}, {"reason", "test"}});
    for (const auto& worker : workers_) {
      EXPECT_TRUE(eventually([&] { return worker->is_blocked(client); })) << client;
    }
  }
  [[nodiscard]] double everywhere(const std::string& metric) {
    double sum = 0;
    for (std::size_t i = 0; i < pop_.nodes(); ++i) sum += pop_.node(i).metric(metric);
    return sum;
  }
  [[nodiscard]] json certificate(std::size_t node) { return pop_.node(node).get("/status")["mesh"]["certificate"]; }

  Pop pop_{{.shards = 1, .proxy = false, .rules = kRules, .tls = true}};
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(PopTls, certificates_are_renewed_by_a_signal_without_a_lost_connection) {
  EXPECT_EQ(certificate(0)["name"], "popgate://test/node-0");
  EXPECT_EQ(certificate(0)["alarm"], "");
  EXPECT_EQ(everywhere("popgate_peers_tls_handshakes_total"), 12) << "each of 6 connections at both ends";
  expect_block_spreads(0, "192.0.2.1");
  const double connects = everywhere("popgate_peers_connects_total");
  pop_.make_certificates();
  for (std::size_t i = 0; i < pop_.nodes(); ++i) kill(pop_.node(i).process().pid(), SIGHUP);
  ASSERT_TRUE(eventually([&] { return everywhere("popgate_peers_certificate_renewals_total") == 3; }));
  for (std::size_t i = 0; i < pop_.nodes(); ++i) expect_block_spreads(i, "192.0.2.1" + std::to_string(i));
  EXPECT_EQ(everywhere("popgate_peers_connects_total"), connects) << "no connection was made anew";
  ASSERT_EQ(pop_.node(2).stop(), 0);
  pop_.node(2).start();
  EXPECT_TRUE(eventually([&] { return pop_.node(2).ready() && pop_.node(0).ready(); })) << "new handshakes work";
  EXPECT_EQ(everywhere("popgate_peers_tls_failures_total"), 0);
}

TEST_F(PopTls, broken_files_change_nothing_and_the_mesh_goes_on) {
  pop_.make_certificates();
  std::ofstream(pop_.certificates() / "node-0.key", std::ios::trunc) << "not a key\n";
  const AdminAnswer answer = ask_admin(pop_.node(0).admin_socket(), "POST", "/reload");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("node-0.key: found what is no private key"), std::string::npos) << answer.body;
  EXPECT_EQ(pop_.node(0).metric("popgate_peers_certificate_renewals_total"), 0);
  ASSERT_EQ(pop_.node(1).stop(), 0);
  pop_.node(1).start();
  ASSERT_TRUE(eventually([&] { return pop_.node(0).ready() && pop_.node(1).ready(); })) << "the old one is in use";
  expect_block_spreads(0, "192.0.2.9");
}

}  // namespace
}  // namespace popgate::process
