// SPDX-License-Identifier: Apache-2.0
//
// One edge node of the simulated PoP: a machine whose workers look into the real table and fill a ring, and a daemon
// that is the real Pipeline, with the real ledger, record file and table in a folder of its own.
//
// Workers and ring outlive the daemon, as they do in a PoP. What a worker recorded is counted here as well, so that the
// daemon's account can be held against it. Workers match by the rules that they mapped last: those of the daemon come
// to them a little later. Real rings, rules blocks and sockets are not part of this: they have tests of their own.
//
// Threads: one.
// Limits: kRingSlots hits wait in the ring; what finds it full is dropped and counted.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/pipeline.h"
#include "libclient/check/table_reader.h"
#include "tests/simulation/model_transport.h"

namespace popgate::simulation {

class Node {
 public:
  static constexpr std::uint16_t kMeshPort = 7700;
  static constexpr std::size_t kRingSlots = 4096;
  static constexpr std::size_t kHitsPerTurn = 512;
  static constexpr microseconds kPollMax{2000};        // between two looks into the ring
  static constexpr microseconds kStopWait{3'000'000};  // as popgated's
  static constexpr microseconds kStopPoll{10'000};
  static constexpr microseconds kRulesMapMax{500'000};  // until workers have the daemon's new rules

  enum class Reload : std::uint8_t { kBegins, kDone };
  struct Watch {
    std::function<void(Node&, const SlotTotals&, const JudgedTotals&)> judged{};
    std::function<void(Node&)> turn{};            // after each task of the daemon's loop
    std::function<void(Node&, Reload)> reload{};  // around the turn in which a daemon takes new rules
    std::function<void(Node&, const Rule&, const TableAnswer&)> checked{};  // a worker asked for a request
  };

  Node(Network& network, HostNumber host, Machine::Clocks clocks, Config config, std::string folder, Watch watch);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The daemon.
  void start();
  /// At once, between two events, as by SIGKILL.
  void kill();
  /// As popgated stops: takes what is in the ring, waits for replies, says goodbye; `stopped` is called then.
  void stop(std::function<void()> stopped);
  /// The disk is lost: the next daemon finds no record file.
  void lose_records();
  [[nodiscard]] bool is_running() const { return pipeline_ != nullptr; }
  [[nodiscard]] bool is_stopping() const { return is_running() && stop_timer_.has_value(); }
  [[nodiscard]] Pipeline& pipeline() { return *pipeline_; }
  [[nodiscard]] Process& process() { return *process_; }
  /// Of what waits for peers, since the daemon started.
  [[nodiscard]] OutputHighWater to_peers() const { return to_peers_ ? to_peers_->high_water() : OutputHighWater{}; }
  [[nodiscard]] std::size_t mesh_output_bytes_max() const { return mesh_output_bytes_max_; }
  /// A bound of the daemons that start from now on.
  void bound_mesh_output(std::size_t bytes_max) { mesh_output_bytes_max_ = bytes_max; }
  /// As many automatic mitigations live as there is room for: a further one is refused, and comes with a later digest.
  void look_whether_full();
  [[nodiscard]] bool was_full_within(microseconds duration) const {
    return full_at_ && network_.world().now() - *full_at_ <= duration;
  }
  [[nodiscard]] std::uint64_t starts() const { return starts_; }
  /// The configuration is replaced; a daemon that runs takes it in a turn of its own.
  void use_rules(const RuleSet& rules);

  // The workers.
  /// As the workers here know it; null: they have none of that id that is enabled.
  [[nodiscard]] const Rule* worker_rule(RuleId rule) const;
  [[nodiscard]] TableAnswer look_up(const Key& key) const;
  /// A worker's look-up for a request.
  [[nodiscard]] TableAnswer check(const Rule& rule, const Key& key);
  void record(const Rule& rule, const Key& key);
  /// Of this node's workers, over all daemons.
  [[nodiscard]] std::uint64_t recorded(RuleId rule) const;
  [[nodiscard]] std::uint64_t waiting(RuleId rule) const;
  [[nodiscard]] std::uint64_t ring_dropped(RuleId rule) const;

  [[nodiscard]] const std::string& name() const { return config_.node; }
  [[nodiscard]] HostNumber host() const { return host_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Config& config() const { return config_; }
  /// One value of what the stages tell; -1: they do not tell it.
  [[nodiscard]] double figure(std::string_view name) const;

 private:
  class MappedTable;
  struct Waiting {
    RuleId rule = 0;
    Hit hit;
  };

  void reload();
  void map_rules_soon();
  void poll_soon();
  void take_from_ring(std::size_t hits_max);
  void finish_stop();
  [[nodiscard]] RuleNumber number_of(RuleId rule) const;

  Network& network_;
  HostNumber host_;
  Machine machine_;
  Random random_;
  Config config_;
  std::string folder_;
  Watch watch_;
  std::uint64_t starts_ = 0;
  std::size_t mesh_output_bytes_max_ = kOutputBytesMax;
  std::optional<ModelInstant> full_at_;

  // In the order of their making; the daemon goes in the reverse order.
  std::unique_ptr<Process> process_;
  std::unique_ptr<ModelTransport> to_shards_;
  std::unique_ptr<ModelTransport> to_peers_;
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<Timer> stop_timer_;
  HostInstant stop_by_{};
  std::function<void()> stopped_;
  bool poll_waits_ = false;

  std::unique_ptr<MappedTable> table_;
  SharedRules worker_rules_;
  RequestTotals requests_;
  std::deque<Waiting> ring_;
  std::map<RuleId, std::uint64_t> recorded_;
  std::map<RuleId, std::uint64_t> waiting_;  // in the ring
  std::map<RuleId, std::uint64_t> ring_dropped_;
};

}  // namespace popgate::simulation
