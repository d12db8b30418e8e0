// SPDX-License-Identifier: Apache-2.0
//
// The model's time, its queue of events, its randomness and its trace: everything that makes a run of a seed the run of
// that seed.
//
// Events run in the order of (time, sequence of scheduling). Nothing else decides an order: no pointer, no address, no
// real clock. Each part of the model draws from a stream of random numbers of its own, so that one more draw in one
// part does not make another history of the rest.
//
// Threads: one.
// Invariants: 1. Time never goes back.
//             2. Equal seeds and equal code give equal trace hashes, in one process or in two.
// Limits: the trace keeps its last kTraceLinesKept lines; its hash covers all of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "libclient/instant.h"

namespace popgate::simulation {

struct ModelClock {
  using duration = microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ModelClock>;
  static constexpr bool is_steady = true;
};
/// True time, which nobody in a real PoP knows.
using ModelInstant = ModelClock::time_point;

using Random = std::mt19937_64;

class World {
 public:
  static constexpr std::size_t kTraceLinesKept = 60;

  explicit World(std::uint64_t seed) : seed_(seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] ModelInstant now() const { return now_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  /// A stream of random numbers of its own for each name.
  [[nodiscard]] Random random_for(std::string_view name) const;

  void at(ModelInstant when, std::function<void()> event);
  void after(microseconds delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }
  /// Runs every event up to `end`, or until `stop()`.
  void run_until(ModelInstant end);
  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  /// Something worth telling: part of the trace's text and hash.
  void note(const std::string& line);
  /// Something too frequent to be told: part of the hash only.
  void mark(std::initializer_list<std::uint64_t> numbers);
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_; }
  [[nodiscard]] const std::deque<std::string>& last_lines() const { return lines_; }
  void print_trace(bool print) { printing_ = print; }

 private:
  struct Event {
    ModelInstant when;
    std::uint64_t sequence;
    std::function<void()> run;
    [[nodiscard]] bool later_than(const Event& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };
  void mix(std::uint64_t number) { hash_ = (hash_ ^ number) * 1'099'511'628'211ULL; }

  std::uint64_t seed_;
  ModelInstant now_{};
  std::vector<Event> queue_;  // a heap, the earliest first
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  bool stopped_ = false;
  std::uint64_t hash_ = 14'695'981'039'346'656'037ULL;
  std::deque<std::string> lines_;
  bool printing_ = false;
};

// Draws that read well. Bounds included.
[[nodiscard]] inline std::uint64_t draw(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}
[[nodiscard]] inline microseconds draw(Random& random, microseconds low, microseconds high) {
  return low +
         microseconds(static_cast<std::int64_t>(draw(random, 0, static_cast<std::uint64_t>((high - low).count()))));
}
[[nodiscard]] inline bool chance(Random& random, double probability) {
  return static_cast<double>(random() >> 11) < probability * 0x1p53;
}

}  // namespace popgate::simulation
