// SPDX-License-Identifier: Apache-2.0
//
// A sliding window cut into slots: which slot a hit belongs to, and which slots touch the window at an instant.
//
// A key's slots are shifted by a phase that comes from its hash, so that no two keys share an edge and nobody can aim
// at one. The slot length is the window over k, rounded up to a microsecond; nothing here needs window == k * slot.
//
// Threads: values.
// Invariants: 1. Every instant lies in exactly one slot of a key: [start, end).
//             2. The slots first_touching .. last_touching cover (now - window - tolerance, now + tolerance].
// Limits: kSlotsMax slots a window; at most k + 2 touch it, because 2 * tolerance <= slot / 2 (checked by the rules).
#pragma once

#include <cstdint>

#include "libclient/instant.h"
#include "libclient/key.h"

namespace popgate {

using SlotIndex = std::int64_t;

inline constexpr unsigned kSlotsDefault = 6;
inline constexpr unsigned kSlotsMax = 60;

struct WindowShape {
  microseconds window{0};          // W
  microseconds slot{0};            // l
  microseconds tolerance{0};       // D: largest allowed difference between two nodes' clocks, coarse clocks included
  unsigned slots = kSlotsDefault;  // k

  [[nodiscard]] static constexpr WindowShape make(microseconds window, unsigned slots, microseconds tolerance) {
    const auto k = static_cast<std::int64_t>(slots);
    return {window, microseconds((window.count() + k - 1) / k), tolerance, slots};
  }
  friend bool operator==(const WindowShape&, const WindowShape&) = default;
};

/// The slots of one key under one window.
class KeySlots {
 public:
  KeySlots(const WindowShape& shape, const Key& key)
      : shape_(shape),
        phase_us_(static_cast<std::int64_t>(key.phase_bits() % static_cast<std::uint64_t>(shape.slot.count()))) {}

  [[nodiscard]] SlotIndex slot_at(PopInstant t) const { return floor_div(t.time_since_epoch().count() + phase_us_); }
  [[nodiscard]] PopInstant start(SlotIndex slot) const {
    return PopInstant(microseconds(slot * shape_.slot.count() - phase_us_));
  }
  [[nodiscard]] PopInstant end(SlotIndex slot) const { return start(slot + 1); }

  /// The oldest slot that ends later than now - window - tolerance.
  [[nodiscard]] SlotIndex first_touching(PopInstant now) const {
    return slot_at(now - shape_.window - shape_.tolerance);
  }
  /// The slot of now + tolerance.
  [[nodiscard]] SlotIndex last_touching(PopInstant now) const { return slot_at(now + shape_.tolerance); }

  [[nodiscard]] const WindowShape& shape() const { return shape_; }

 private:
  [[nodiscard]] SlotIndex floor_div(std::int64_t us) const {
    const std::int64_t length = shape_.slot.count();
    return us >= 0 ? us / length : -((-us + length - 1) / length);
  }

  WindowShape shape_;
  std::int64_t phase_us_;
};

}  // namespace popgate
