// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include "daemon/result.h"

namespace popgate::simulation {

Random World::random_for(std::string_view name) const {
  std::uint64_t hash = 14'695'981'039'346'656'037ULL ^ seed_;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211ULL;
  std::seed_seq sequence{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32),
                         static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)};
  return Random(sequence);
}

void World::at(ModelInstant when, std::function<void()> event) {
  queue_.push_back({std::max(when, now_), sequence_++, std::move(event)});
  std::push_heap(queue_.begin(), queue_.end(), [](const Event& a, const Event& b) { return a.later_than(b); });
}

void World::run_until(ModelInstant end) {
  while (!stopped_ && !queue_.empty() && queue_.front().when <= end) {
    std::pop_heap(queue_.begin(), queue_.end(), [](const Event& a, const Event& b) { return a.later_than(b); });
    Event event = std::move(queue_.back());
    queue_.pop_back();
    POPGATE_ASSERT(event.when >= now_);
    now_ = event.when;
    ++events_;
    event.run();
  }
  if (!stopped_) now_ = std::max(now_, end);
}

void World::note(const std::string& line) {
  mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  for (const char c : line) mix(static_cast<unsigned char>(c));
  char stamp[32];
  (void)std::snprintf(stamp, sizeof stamp, "%11.6f  ", static_cast<double>(now_.time_since_epoch().count()) / 1e6);
  if (printing_) std::printf("%s%s\n", stamp, line.c_str());
  lines_.push_back(stamp + line);
  if (lines_.size() > kTraceLinesKept) lines_.pop_front();
}

void World::mark(std::initializer_list<std::uint64_t> numbers) {
  mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  for (const std::uint64_t number : numbers) mix(number);
}

}  // namespace popgate::simulation
