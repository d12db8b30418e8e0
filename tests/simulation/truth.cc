// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/truth.h"

#include <algorithm>

#include "daemon/count/counter_key.h"

namespace popgate::simulation {
namespace {

std::string_view tag_of(std::string_view counter) {
  const std::size_t begin = counter.find('{');
  return counter.substr(begin, counter.find('}') - begin);
}

}  // namespace

void Course::add(ModelInstant at, std::uint64_t hits) {
  const std::uint64_t sum = all() + hits;
  if (!points_.empty() && points_.back().at == at) {
    points_.back().sum = sum;
  } else {
    points_.push_back({at, sum});
  }
}

std::uint64_t Course::until(ModelInstant to) const {
  const auto later = std::upper_bound(points_.begin(), points_.end(), to,
                                      [](ModelInstant instant, const Point& point) { return instant < point.at; });
  return later == points_.begin() ? 0 : std::prev(later)->sum;
}

void Truth::hit(const Key& key, const WindowShape& shape, PopInstant stamp, Made made, ModelInstant at) {
  const std::uint64_t hits = made.hits;
  hits_of_[key].add(at, hits);
  CounterNames names(ring_, key, shape.slot);
  const std::string_view counter = names.of(KeySlots(shape, key).slot_at(stamp));
  if (made.rightly_stamped) counters_[std::string(counter)].stamped += hits;
  keys_[std::string(tag_of(counter))].hits += hits;
  hits_ += hits;
}

void Truth::excuse(const Key& key, microseconds slot_length, SlotIndex slot, std::uint64_t hits) {
  CounterNames names(ring_, key, slot_length);
  Counter& counter = counters_[std::string(names.of(slot))];
  counter.stamped += hits;
  counter.excused += hits;
}

std::uint64_t Truth::excused_in(const Key& key, microseconds slot_length, SlotIndex slot) const {
  CounterNames names(ring_, key, slot_length);
  const auto found = counters_.find(names.of(slot));
  return found == counters_.end() ? 0 : found->second.excused;
}

Truth::Excess Truth::counted(std::string_view counter, std::uint64_t hits, ModelInstant at) {
  if (counter.ends_with("generation")) return Excess::kNone;
  Counter& slot = counters_[std::string(counter)];
  slot.counted.add(at, hits);
  counted_ += hits;
  Sums& key = keys_[std::string(tag_of(counter))];
  key.counted += hits;
  if (key.counted > key.hits) return Excess::kKey;
  return slot.counted.all() > slot.stamped ? Excess::kSlot : Excess::kNone;
}

const Course& Truth::hits_of(const Key& key) const {
  static const Course kNone;
  const auto found = hits_of_.find(key);
  return found == hits_of_.end() ? kNone : found->second;
}

const Course& Truth::counted_in(const Key& key, microseconds slot_length, SlotIndex slot) const {
  static const Course kNone;
  CounterNames names(ring_, key, slot_length);
  const auto found = counters_.find(names.of(slot));
  return found == counters_.end() ? kNone : found->second.counted;
}

}  // namespace popgate::simulation
