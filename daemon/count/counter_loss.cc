// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_loss.h"

#include <algorithm>
#include <utility>

namespace popgate {
namespace {

constexpr int kChanceBits = 20;

PopInstant born(std::uint64_t generation, PopInstant now) {
  const auto now_ms = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count();
  const auto born_ms = static_cast<std::int64_t>(generation >> kChanceBits);
  return born_ms > now_ms ? now : PopInstant(milliseconds(born_ms));
}

}  // namespace

std::uint64_t CounterLoss::new_generation(PopInstant now, std::uint64_t chance) {
  const auto now_ms = std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count();
  const std::uint64_t bits = (std::uint64_t{1} << kChanceBits) - 1;
  return static_cast<std::uint64_t>(now_ms) << kChanceBits | (chance & bits);
}

bool CounterLoss::slot_read(CountedSlot& slot, std::uint64_t total, PopInstant asked_at, PopInstant now) {
  const bool lost = KeyWindows::observe(slot, total, asked_at, lost_at_);
  if (lost) lost_at_ = now;
  return lost;
}

bool CounterLoss::generation_read(std::optional<std::uint64_t> value, PopInstant asked_at, PopInstant now) {
  const bool lost = generation_ && generation_ != value && generation_read_at_ >= lost_at_;
  // Another restart may have come between the one that is known and the birth of what stands there now.
  if (!met_before_ || generation_ != value) lost_at_ = std::max(lost_at_, value ? born(*value, now) : now);
  if (lost) lost_at_ = now;
  met_before_ = true;
  generation_ = value;
  generation_read_at_ = asked_at;
  generation_is_missing_ = !value;
  return lost;
}

bool CounterLoss::affects(const WindowShape& shape, PopInstant now) const {
  return lost_at_ != kNever && now < lost_at_ + shape.window + shape.slot + 2 * shape.tolerance;
}

bool CounterLoss::take_missing_generation() { return std::exchange(generation_is_missing_, false); }

}  // namespace popgate
