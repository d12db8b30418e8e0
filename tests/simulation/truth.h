// SPDX-License-Identifier: Apache-2.0
//
// What really happened, which nobody in a real PoP knows: when every hit was made, in true time, and every increment
// that a memcached carried out, also those that it has forgotten since.
//
// Threads: one.
// Limits: everything is kept for the whole run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/rules.h"
#include "libclient/key.h"
#include "tests/simulation/world.h"

namespace popgate::simulation {

/// Hits over true time.
class Course {
 public:
  void add(ModelInstant at, std::uint64_t hits);
  /// Hits in (after, to].
  [[nodiscard]] std::uint64_t between(ModelInstant after, ModelInstant to) const { return until(to) - until(after); }
  /// Hits up to and with `to`.
  [[nodiscard]] std::uint64_t until(ModelInstant to) const;
  [[nodiscard]] std::uint64_t all() const { return points_.empty() ? 0 : points_.back().sum; }

 private:
  struct Point {
    ModelInstant at;
    std::uint64_t sum;
  };
  std::vector<Point> points_;
};

class Truth {
 public:
  explicit Truth(std::uint32_t ring) : ring_(ring) {}

  struct Made {
    std::uint64_t hits = 1;
    bool rightly_stamped = true;  // else it is not to be counted
  };
  void hit(const Key& key, const WindowShape& shape, PopInstant stamp, Made made, ModelInstant at);
  /// Of those that were stamped wrongly, these may be counted.
  void excuse(const Key& key, microseconds slot_length, SlotIndex slot, std::uint64_t hits);
  /// What was counted more often than it was ever hit.
  enum class Excess : std::uint8_t { kNone, kSlot, kKey };
  /// A shard carried out an increment.
  [[nodiscard]] Excess counted(std::string_view counter, std::uint64_t hits, ModelInstant at);

  [[nodiscard]] const Course& hits_of(const Key& key) const;
  /// Increments carried out for that slot of the key.
  [[nodiscard]] const Course& counted_in(const Key& key, microseconds slot_length, SlotIndex slot) const;
  [[nodiscard]] std::uint64_t excused_in(const Key& key, microseconds slot_length, SlotIndex slot) const;
  [[nodiscard]] std::uint64_t hits() const { return hits_; }
  [[nodiscard]] std::uint64_t counted() const { return counted_; }

 private:
  struct Counter {
    std::uint64_t stamped = 0;  // what may be counted of it
    std::uint64_t excused = 0;  // and of that, with a wrong stamp
    Course counted;
  };
  std::uint32_t ring_;
  std::map<Key, Course> hits_of_;
  std::map<std::string, Counter, std::less<>> counters_;
  struct Sums {
    std::uint64_t hits = 0;
    std::uint64_t counted = 0;
  };
  std::map<std::string, Sums, std::less<>> keys_;  // by the tag that counters carry
  std::uint64_t hits_ = 0;
  std::uint64_t counted_ = 0;
};

}  // namespace popgate::simulation
