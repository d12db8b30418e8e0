// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/machine.h"

namespace popgate::simulation {

microseconds Machine::elapsed() const {
  const std::int64_t us = world_.now().time_since_epoch().count();
  return microseconds(us + us * clocks_.drift_ppm / kMillion);
}

PopInstant Machine::wall_now() const {
  const PopInstant exact = kWallStart + clocks_.wall_ahead + elapsed();
  return PopInstant(exact.time_since_epoch() / kTick * kTick);
}

microseconds Machine::wall_ahead() const {
  return kWallStart + clocks_.wall_ahead + elapsed() - (kWallStart + world_.now().time_since_epoch());
}

void Machine::step_wall(microseconds by) {
  if (is_off()) off_until_ = world_.now();
  clocks_.wall_ahead += by;
}

bool Machine::was_off_within(microseconds duration) const {
  return is_off() || (off_until_ && world_.now() - *off_until_ < duration);
}

microseconds Machine::true_time_of(microseconds duration) const {
  const std::int64_t us = duration.count();
  if (us <= 0) return microseconds(0);
  const std::int64_t rate = kMillion + clocks_.drift_ppm;
  return microseconds((us * kMillion + rate - 1) / rate + 1);
}

}  // namespace popgate::simulation
