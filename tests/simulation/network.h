// SPDX-License-Identifier: Apache-2.0
//
// The network of the model: carries packets between hosts, with what a network does to them, and holds each host's
// kernel side of its connections.
//
// Each direction of each pair of hosts has a Path of its own, so that a partition can be one-way. A packet of a path is
// lost, repeated, delayed, and thereby overtaken, at random; what a byte stream makes of that is TcpEnd's.
//
// Threads: one.
// Limits: a path with a rate holds back kPathQueueMax of what waits to leave; the rest is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/simulation/world.h"

namespace popgate::simulation {

class TcpEnd;

/// A host of the network, by its place in the address 127.0.x.y.
using HostNumber = std::uint32_t;

struct Path {
  microseconds delay{200};
  microseconds jitter{100};
  double loss = 0;
  double repeat = 0;
  bool cut = false;
  std::uint64_t bytes_per_second = 0;  // 0: without bound

  ModelInstant free_from{};  // when what waits will have left
};

/// Where a connection is accepted, or one of its ends.
struct Port {
  HostNumber host = 0;
  std::uint16_t port = 0;
  friend auto operator<=>(const Port&, const Port&) = default;
};

struct Packet {
  enum class Kind : std::uint8_t { kSyn, kSynAck, kData, kAck, kProbe, kReset };
  Kind kind = Kind::kAck;
  HostNumber from = 0;
  HostNumber to = 0;
  std::uint64_t from_end = 0;
  std::uint64_t to_end = 0;   // 0: the listener at `to_port`
  std::uint16_t to_port = 0;  // of a SYN
  std::uint64_t sequence = 0;
  std::string bytes;
  bool fin = false;  // nothing follows `bytes`
  std::uint64_t acknowledged = 0;
  std::uint64_t window_end = 0;  // the sender of this packet takes bytes up to here
};

class Network {
 public:
  using AcceptFunction = std::function<void(std::uint64_t end)>;

  explicit Network(World& world);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] Path& path(HostNumber from, HostNumber to);
  /// Both directions.
  void for_both(HostNumber a, HostNumber b, const std::function<void(Path&)>& change);

  /// False when somebody listens there already.
  [[nodiscard]] bool listen(Port port, AcceptFunction accepted);
  void stop_listening(Port port) { listeners_.erase(port); }
  [[nodiscard]] std::uint64_t connect(HostNumber from, Port to, std::function<void()> on_change);
  /// Null when the kernel has forgotten it.
  [[nodiscard]] TcpEnd* find(std::uint64_t end);

  void send(Packet packet);
  void forget(std::uint64_t end);

 private:
  static constexpr std::chrono::seconds kPathQueueMax{1};
  static constexpr std::size_t kHeaderBytes = 60;

  void deliver(const Packet& packet);
  void deliver_syn(const Packet& packet);
  void reset_back(const Packet& packet);

  World& world_;
  Random random_;
  // Only looked up, never walked through: their order is nobody's.
  std::unordered_map<std::uint64_t, Path> paths_;
  std::unordered_map<std::uint64_t, std::unique_ptr<TcpEnd>> ends_;
  std::map<Port, AcceptFunction> listeners_;
  std::map<std::pair<HostNumber, std::uint64_t>, std::uint64_t> answering_;  // ends by whom they answer
  std::uint64_t last_end_ = 0;
};

}  // namespace popgate::simulation
