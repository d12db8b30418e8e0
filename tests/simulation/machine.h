// SPDX-License-Identifier: Apache-2.0
//
// One machine of the model: its clocks, which are not true time.
//
// Threads: one.
// Invariants: 1. host_now never goes back; only the wall clock steps.
#pragma once

#include <optional>
#include <string>

#include "tests/simulation/world.h"

namespace popgate::simulation {

class Machine {
 public:
  struct Clocks {
    HostInstant booted{};        // CLOCK_BOOTTIME when the model begins
    microseconds wall_ahead{0};  // of true time, when the model begins
    std::int64_t drift_ppm = 0;  // how much faster both clocks run than true time
  };
  /// What CLOCK_REALTIME_COARSE is late by at most: one kernel tick at 250 Hz.
  static constexpr microseconds kTick{4000};
  static constexpr microseconds kRightWithin{20'000};
  /// True wall time when the model begins: the year 2024.
  static constexpr PopInstant kWallStart{std::chrono::hours(480000)};

  Machine(World& world, std::string name, Clocks clocks) : world_(world), name_(std::move(name)), clocks_(clocks) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] HostInstant host_now() const { return clocks_.booted + elapsed(); }
  /// Coarse, as PopClock is.
  [[nodiscard]] PopInstant wall_now() const;
  /// How far the wall clock is ahead of true time now.
  [[nodiscard]] microseconds wall_ahead() const;
  void step_wall(microseconds by);
  /// Further from true time than a node's clock may be.
  [[nodiscard]] bool is_off() const { return std::chrono::abs(wall_ahead()) > kRightWithin; }
  [[nodiscard]] bool was_off_within(microseconds duration) const;
  /// True time in which this machine's clocks pass `duration`; rounded up, so that no timer is early.
  [[nodiscard]] microseconds true_time_of(microseconds duration) const;
  [[nodiscard]] ModelInstant true_time_at(HostInstant instant) const {
    return world_.now() + true_time_of(instant - host_now());
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;
  [[nodiscard]] microseconds elapsed() const;

  World& world_;
  std::string name_;
  Clocks clocks_;
  std::optional<ModelInstant> off_until_;
};

}  // namespace popgate::simulation
