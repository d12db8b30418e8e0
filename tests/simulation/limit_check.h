// SPDX-License-Identifier: Apache-2.0
//
// That the PoP does what it is for: a client that is over its limit, by whole slots, is mitigated on every node soon.
//
// It is looked at in quiet times only, when no counter was lost, no lift forgave and no rule changed within the window;
// it finds what under-counts in silence, whichever stage does.
//
// Threads: one.
#pragma once

#include "tests/simulation/traffic.h"

namespace popgate::simulation {

class LimitCheck {
 public:
  static constexpr microseconds kEvery{500'000};
  static constexpr microseconds kEnforcedWithin{1'000'000};
  static constexpr microseconds kQuietFor{12'000'000};  // peers and shards are connected again by then

  LimitCheck(Pop& pop, const Traffic& traffic) : pop_(pop), traffic_(traffic) {}
  void start();
  /// Counters were lost, or rules changed: what was counted before may be unknown.
  void forgotten() { forgotten_at_ = pop_.world().now(); }
  [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }

 private:
  void look();
  void look_at(const Traffic::Client& client, const Rule& rule);
  [[nodiscard]] bool came_since_end(Node& node, const Key& key, const Mitigation* ended) const;
  [[nodiscard]] bool is_quiet(microseconds for_so_long) const;

  Pop& pop_;
  const Traffic& traffic_;
  ModelInstant forgotten_at_{microseconds(-3'600'000'000)};
  std::uint64_t looked_at_ = 0;
};

}  // namespace popgate::simulation
