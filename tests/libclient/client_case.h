// SPDX-License-Identifier: Apache-2.0
//
// What every test of the library through its C ABI begins with: handles that close themselves, and the real daemon side
// of the worker socket.
//
// Threads: the test's.
#pragma once

#include <gtest/gtest.h>
#include <popgate/popgate.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/libclient/daemon_side.h"

namespace popgate {

struct CloseClient {
  void operator()(popgate_client* client) const { popgate_close(client); }
};
using ClientOwner = std::unique_ptr<popgate_client, CloseClient>;

inline ClientOwner open_client(const std::string& path, const popgate_options* options = nullptr) {
  popgate_client* client = nullptr;
  EXPECT_EQ(popgate_open(path.c_str(), options, &client), POPGATE_OK);
  return ClientOwner(client);
}

inline popgate_statistics statistics_of(const ClientOwner& client) {
  popgate_statistics statistics = POPGATE_STATISTICS_INIT;
  EXPECT_EQ(popgate_get_statistics(client.get(), &statistics), POPGATE_OK);
  return statistics;
}

inline popgate_request request_from(const char* address) {
  popgate_request request = POPGATE_REQUEST_INIT;
  request.method = "GET";
  request.method_bytes = 3;
  request.host = "example.com";
  request.host_bytes = 11;
  request.path = "/";
  request.path_bytes = 1;
  EXPECT_EQ(popgate_parse_address(address, std::strlen(address), &request.client), POPGATE_OK);
  return request;
}

class ClientTest : public testing::Test {
 protected:
  ClientTest() : socket_path_(directory_.file("workers.sock")), ledger_(Ledger::in_memory()) {
    for (const RuleId rule : {101U, 102U, 103U}) numbers_.push_back(*ledger_->number_for(rule));
  }

  void start_daemon(const std::vector<Rule>& rules) {
    daemon_ = std::make_unique<DaemonSide>(socket_path_, *ledger_, table_);
    daemon_->use_rules(rules);
  }
  [[nodiscard]] bool attach(const ClientOwner& client, std::uint64_t attaches = 1) {
    return daemon_->pump_until([&] {
      popgate_tick(client.get());
      const popgate_statistics statistics = statistics_of(client);
      return statistics.attached == 1 && statistics.attaches == attaches;
    });
  }
  [[nodiscard]] bool detach(const ClientOwner& client) {
    daemon_.reset();
    const HostInstant deadline = HostClock::now() + std::chrono::seconds(10);
    while (statistics_of(client).attached == 1 && HostClock::now() < deadline) popgate_tick(client.get());
    return statistics_of(client).attached == 0;
  }
  [[nodiscard]] bool hits_arrive(std::size_t count) {
    return daemon_->pump_until([&] { return daemon_->hits().size() >= count; });
  }
  // The key of a client's address under a rule, as it arrives at the daemon.
  Key key_of(const ClientOwner& client, const popgate_request& request) {
    const std::size_t before = daemon_->hits().size();
    EXPECT_EQ(popgate_check(client.get(), &request, nullptr), POPGATE_PASS);
    EXPECT_TRUE(hits_arrive(before + 1));
    return daemon_->hits().empty() ? Key{} : daemon_->hits().back().key;
  }

  TemporaryDirectory directory_;
  std::string socket_path_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<RuleNumber> numbers_;
  DaemonSide::Table table_;
  std::unique_ptr<DaemonSide> daemon_;
};

}  // namespace popgate
