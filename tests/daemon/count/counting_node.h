// SPDX-License-Identifier: Apache-2.0
//
// One node of a PoP as far as counting goes: a MemcachedStore on an event loop, its ledger, and what it reported.
//
// Several nodes share one loop in a test, so that what happens between them is one order of events.
//
// Threads: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/collect/ledger.h"
#include "daemon/config.h"
#include "daemon/count/memcached_store.h"
#include "daemon/event_loop.h"
#include "daemon/socket_transport.h"
#include "tests/daemon/count/test_key.h"
#include "tests/process/memcached.h"

namespace popgate {

inline constexpr RuleNumber kTestRule = 1;

/// 60 s in 6 slots under kTestRule.
[[nodiscard]] SharedRules test_rules();
[[nodiscard]] CountersConfig config_of(const std::vector<std::unique_ptr<process::Memcached>>& servers);
[[nodiscard]] std::vector<std::unique_ptr<process::Memcached>> start_servers(std::size_t count);
/// The same servers, reached through a proxy on this port.
[[nodiscard]] CountersConfig through_proxy(CountersConfig config, std::uint16_t port);

struct Report {
  Key key;
  std::vector<SlotCount> slots;
  bool fresh = false;
  bool counters_lost = false;
  bool degraded = false;
  bool clock_in_doubt = false;
  [[nodiscard]] std::uint64_t known() const;
  [[nodiscard]] std::uint64_t own_unsent() const;
};

class CountingNode {
 public:
  CountingNode(EventLoop& loop, const CountersConfig& config, std::uint64_t seed = 1, std::uint32_t keys_max = 100'000);

  /// Draws hits from a ring, as it were: they are in the ledger, and go to the store in the slot of now, or one before.
  void hit(const Key& key, std::uint64_t hits = 1) { hit(std::vector<Key>{key}, hits); }
  void hit(const std::vector<Key>& keys, std::uint64_t hits, SlotIndex slots_ago = 0);

  [[nodiscard]] MemcachedStore& store() { return *store_; }
  [[nodiscard]] LedgerRow row() const { return ledger_->row(kTestRule); }
  [[nodiscard]] std::uint64_t column(LedgerColumn column) const { return row()[column]; }
  /// Hits unsent and in flight by the store's own metrics: what the ledger must call pending.
  [[nodiscard]] std::uint64_t held() const;
  [[nodiscard]] double metric(std::string_view name) const;
  [[nodiscard]] bool all_shards_reachable() const;

  std::vector<Report> reports;
  /// Called for each report, in the order of events.
  std::function<void(const Report&)> on_report;

 private:
  SocketTransport sockets_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<MemcachedStore> store_;
  Timer flush_timer_;
};

/// Runs the loop until the condition holds, looking again after every turn; false when the deadline passes first.
[[nodiscard]] bool run_until(EventLoop& loop, const std::function<bool()>& condition,
                             std::chrono::milliseconds deadline = std::chrono::seconds(20));

/// The total over all slots of the key in the window, read straight from the servers.
[[nodiscard]] std::uint64_t total_in_memcached(const std::vector<std::unique_ptr<process::Memcached>>& servers,
                                               const Placement& placement, const Key& key);
[[nodiscard]] std::uint64_t total_in_memcached(const std::vector<std::unique_ptr<process::Memcached>>& servers,
                                               const Placement& placement, const std::vector<Key>& keys);

}  // namespace popgate
