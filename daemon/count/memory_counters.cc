// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memory_counters.h"

#include <algorithm>

namespace popgate {
namespace {

// How long after its last hit a key's slots can still touch a window.
microseconds lifetime(const WindowShape& shape) { return shape.window + shape.slot + 2 * shape.tolerance; }

}  // namespace

MemoryCounters::MemoryCounters(std::size_t keys_max, std::uint64_t seed)
    : keys_max_(std::max<std::size_t>(keys_max, 1)), random_(seed) {}

std::uint64_t MemoryCounters::add(const Addition& addition, const WindowShape& shape, PopInstant now) {
  Counters& counters = counters_of(addition.key, shape, now);
  counters.last_hit = std::max(counters.last_hit, now);
  counters.shape = shape;
  const SlotIndex oldest = KeySlots(shape, addition.key).slot_at(now - lifetime(shape));
  std::erase_if(counters.slots, [&](const SlotTotal& held) { return held.slot < oldest; });
  const auto held = std::find_if(counters.slots.begin(), counters.slots.end(),
                                 [&](const SlotTotal& total) { return total.slot == addition.slot; });
  SlotTotal& total = held != counters.slots.end() ? *held : counters.slots.emplace_back(SlotTotal{addition.slot, 0});
  return total.hits += addition.hits;
}

std::uint64_t MemoryCounters::total(const Key& key, SlotIndex slot) const {
  const auto found = index_.find(key);
  if (found == index_.end()) return 0;
  for (const SlotTotal& held : counters_[found->second].slots) {
    if (held.slot == slot) return held.hits;
  }
  return 0;
}

bool MemoryCounters::counters_lost(const WindowShape& shape, PopInstant now) const {
  return lost_at_ != kNever && now < lost_at_ + lifetime(shape);
}

MemoryCounters::Counters& MemoryCounters::counters_of(const Key& key, const WindowShape& shape, PopInstant now) {
  if (const auto found = index_.find(key); found != index_.end()) return counters_[found->second];
  if (counters_.size() >= keys_max_) evict(now);
  index_.emplace(key, counters_.size());
  return counters_.emplace_back(Counters{key, shape, now, {}});
}

void MemoryCounters::evict(PopInstant now) {
  std::uniform_int_distribution<std::size_t> any(0, counters_.size() - 1);
  std::size_t coldest = any(random_);
  for (int i = 1; i < kSample; ++i) {
    const std::size_t other = any(random_);
    if (counters_[other].last_hit < counters_[coldest].last_hit) coldest = other;
  }
  const bool live = now < counters_[coldest].last_hit + lifetime(counters_[coldest].shape);
  ++(live ? evicted_live_ : evicted_cold_);
  if (live) lost_at_ = now;
  index_.erase(counters_[coldest].key);
  if (coldest + 1 < counters_.size()) {
    counters_[coldest] = std::move(counters_.back());
    index_[counters_[coldest].key] = coldest;
  }
  counters_.pop_back();
}

void MemoryCounters::visit(const MetricVisitor& visitor) const {
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  visitor({"popgate_count_memory_keys_held",
           "keys",
           "Keys counted in this process.",
           number(counters_.size()),
           false,
           {},
           {}});
  visitor({"popgate_count_memory_cold_keys_evicted",
           "keys",
           "Keys without a slot in any window that made room.",
           number(evicted_cold_),
           true,
           {},
           {}});
  visitor({"popgate_count_memory_live_keys_evicted",
           "keys",
           "Keys that made room while their hits still counted: raise keys_max.",
           number(evicted_live_),
           true,
           {},
           {}});
}

}  // namespace popgate
