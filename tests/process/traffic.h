// SPDX-License-Identifier: Apache-2.0
//
// A worker that sends requests at a bounded rate on a thread of its own, while the test kills and restarts what is
// behind it, and that looks between any two lots whether the clients that must be blocked are.
//
// Threads: the calls belong to the test's thread; the worker to the traffic's.
// Invariants: 1. Nothing is sent between pause() and resume(), and pause() returns after the last request has.
//             2. Every lot is followed by a look at each watched client.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/pop.h"

namespace popgate::process {

struct TrafficPlan {
  int clients = 8;
  int lot = 16;                                // requests sent one after the other
  std::chrono::microseconds apart{1000};       // between two lots
  std::uint32_t ring_slots = 0;                // 0: the default
  std::vector<std::string> must_be_blocked{};  // addresses, looked at and never sent
};

class Traffic {
 public:
  /// Attached when it returns, and paused. Throws when no daemon welcomes it.
  Traffic(const Node& node, TrafficPlan plan);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void resume();
  void pause();
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] bool attached() const { return attached_; }
  /// Hits that found the ring full.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  /// Looks at watched clients, and those of them that found one not blocked.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] std::uint64_t passed_through() const { return passed_through_; }

 private:
  void run(const Node& node);
  void send_lot(Worker& worker);
  void look(Worker& worker);

  TrafficPlan plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;   // under mutex_
  bool wanted_ = false;  // under mutex_: traffic is to run
  bool idle_ = false;    // under mutex_: the thread waits
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> looks_{0};
  std::atomic<std::uint64_t> passed_through_{0};
  std::atomic<bool> attached_{false};
  std::thread thread_;
};

/// The address of a client of every Traffic.
[[nodiscard]] std::string traffic_client(int index);

}  // namespace popgate::process
