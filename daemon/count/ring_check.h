// SPDX-License-Identifier: Apache-2.0
//
// Proves on the running PoP that twemproxy places keys as Popgate does, and that every shard answers.
//
// Two consistent-hash clients that disagree count each key in two places and report no error. So probe keys are written
// as counting would reach them (through twemproxy, or straight) and read from the very shard where placement says they
// are. They expire after kProbeExpirySeconds.
//
// Threads: the event loop's; never blocks it.
// Invariants: 1. `done` is called exactly once, unless the check is destroyed first; not from within the constructor.
//                The check may not be destroyed from within it.
// Limits: kProbesPerShard probes a shard; two time-outs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/count/placement.h"
#include "daemon/count/text_exchange.h"
#include "daemon/reactor.h"
#include "daemon/transport.h"

namespace popgate {

struct RingCheckShard {
  std::string name;
  std::uint32_t agreeing = 0;     // probes found where placement says
  std::uint32_t differing = 0;    // written, and not there
  std::uint32_t unreachable = 0;  // could not be written or read
  std::string fault;              // the last one, or empty
};

struct RingCheckReport {
  bool through_proxy = false;
  std::vector<RingCheckShard> shards;
  /// Every probe was found where it should be.
  [[nodiscard]] bool agrees() const;
};

class RingCheck {
 public:
  struct Setup {
    Reactor* reactor = nullptr;
    Transport* transport = nullptr;
    const Placement* placement = nullptr;  // outlives the check
    std::vector<std::string> names;        // of the shards
    std::vector<SocketAddress> addresses;  // of the shards
    std::optional<SocketAddress> proxy;
    milliseconds timeout{0};
    std::uint64_t seed = 0;
  };
  using DoneFunction = std::function<void(const RingCheckReport&)>;

  RingCheck(Setup setup, DoneFunction done);
  RingCheck(const RingCheck&) = delete;
  RingCheck& operator=(const RingCheck&) = delete;

 private:
  static constexpr std::size_t kProbesPerShard = 128;
  static constexpr std::size_t kProbeTriesMax = 100'000;  // for shards of little weight
  static constexpr int kProbeExpirySeconds = 10;
  static constexpr milliseconds kProxyMargin{1000};  // twemproxy's own time-out for a dead shard fits in

  struct Probe {
    std::string key;
    std::uint64_t value = 0;
    ShardIndex shard = 0;
    bool written = false;
    bool found = false;
  };

  void choose_probes(std::uint64_t seed);
  void write_probes();
  void write(const SocketAddress& address, std::vector<std::size_t> probes);
  void read_probes();
  void read(ShardIndex shard);
  void take_value(const MemcachedReply& reply);
  void exchange_ended();
  void conclude();

  Setup setup_;
  DoneFunction done_;
  std::vector<Probe> probes_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::vector<std::unique_ptr<TextExchange>> exchanges_;
  std::size_t running_ = 0;
  bool reading_ = false;
  RingCheckReport report_;
  Timer next_step_;  // steps follow from the loop, not from within the exchange that ended
};

}  // namespace popgate
