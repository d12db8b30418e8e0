// SPDX-License-Identifier: Apache-2.0
//
// What the parent and the workers of a live replay share: one anonymous mapping, made before the workers are forked.
//
// Threads: the parent and each worker process.
// Invariants: 1. A result is written by the worker that its request was planned for, once; `sent_us` last (release),
//                and read first (acquire).
//             2. A watch is written by the parent before `watches` counts it (release/acquire); its `seen` fields by
//                the worker of that index, once.
// Limits: kWatchesMax crossings are watched in one run; kLiveWorkersMax workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/result.h"

namespace popgate {

inline constexpr unsigned kLiveWorkersMax = 16;
inline constexpr std::uint32_t kWatchesMax = 65536;

/// What came of one request.
struct LiveResult {
  std::atomic<std::int64_t> sent_us;  // wall clock; 0: not sent yet
  std::uint32_t rule;                 // that blocks or would; 0: none
  std::uint32_t retry_after_s;
  std::uint8_t blocked;
  std::uint8_t would_block;
};

/// A key that crossed its limit: workers look every millisecond whether their daemon enforces it.
struct LiveWatch {
  struct Seen {
    std::atomic<std::int64_t> at_us;  // 0: not yet; kOtherRule: the client is blocked, by another rule
    std::atomic<std::uint32_t> retry_after_s;
  };
  static constexpr std::int64_t kOtherRule = -1;
  std::uint32_t request;  // one of the key's
  std::uint32_t rule;
  std::int64_t crossed_us;
  Seen seen[kLiveWorkersMax];
};

struct LiveWorkerFigures {
  std::atomic<std::uint32_t> state;  // WorkerState
  std::uint64_t checks_detached;
  std::uint64_t hits_recorded;
  std::uint64_t hits_dropped;
};

enum class WorkerState : std::uint32_t { kStarting = 0, kAttached = 1, kDone = 2, kCannotAttach = 3 };

struct LiveControl {
  std::atomic<std::int64_t> start_us;  // parent: 0 until everybody is attached
  std::atomic<std::uint32_t> stop;     // parent: end now
  std::atomic<std::uint32_t> watches;  // parent
  LiveWorkerFigures workers[kLiveWorkersMax];
};

class LiveMemory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LiveMemory>> make(std::size_t requests);
  ~LiveMemory();
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  [[nodiscard]] LiveControl& control() { return *control_; }
  [[nodiscard]] LiveWatch& watch(std::uint32_t index) { return watches_[index]; }
  [[nodiscard]] LiveResult& result(std::size_t request) { return results_[request]; }

 private:
  LiveMemory(void* base, std::size_t bytes);
  void* base_;
  std::size_t bytes_;
  LiveControl* control_;
  LiveWatch* watches_;
  LiveResult* results_;
};

}  // namespace popgate
