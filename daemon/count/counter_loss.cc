// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/counter_loss.h"

#include <utility>

namespace popgate {

bool CounterLoss::slot_read(CountedSlot& slot, std::uint64_t total, PopInstant asked_at, PopInstant now) {
  const bool lost = KeyWindows::observe(slot, total, asked_at, lost_at_);
  if (lost) lost_at_ = now;
  return lost;
}

bool CounterLoss::generation_read(std::optional<std::uint64_t> value, PopInstant asked_at, PopInstant now) {
  const bool lost = generation_ && generation_ != value && generation_read_at_ >= lost_at_;
  const bool fresh_shard = !met_before_ && !value;
  if (lost || fresh_shard) lost_at_ = now;
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
