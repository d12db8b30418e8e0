// SPDX-License-Identifier: Apache-2.0
//
// Notices that a shard has lost counters, and remembers it for as long as a window can be affected.
//
// A shard that restarts or evicts answers as if nothing had happened. It shows in a total below one that was read
// before (a missing counter reads as 0), and in the shard's generation key: a value that the first node to miss it puts
// there, and that is gone or another after a restart. It says when it was put there, so that a daemon that starts after
// the restart knows of it, too. A slot or generation that was last read before a loss
// that is already known is explained by that loss and is no new one.
//
// Threads: a value.
// Invariants: 1. One loss is noticed once, however many counters show it.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/count/key_windows.h"

namespace popgate {

class CounterLoss {
 public:
  /// Each takes what a command made at `asked_at` has read, and returns true when it shows a loss not known yet.
  [[nodiscard]] bool slot_read(CountedSlot& slot, std::uint64_t total, PopInstant asked_at, PopInstant now);
  [[nodiscard]] bool generation_read(std::optional<std::uint64_t> value, PopInstant asked_at, PopInstant now);
  /// What to put there: the time in milliseconds, and 20 bits of chance. Of a value that an earlier release put there,
  /// which is chance alone, most are later than now, and mean that nobody knows.
  [[nodiscard]] static std::uint64_t new_generation(PopInstant now, std::uint64_t chance);
  /// Known from elsewhere.
  void note(PopInstant now) { lost_at_ = now; }

  /// True within W + l + 2D of a loss. Also after the birth of the generation that was found at the first contact, or
  /// that first contact when there was none: what was counted there before may be gone.
  [[nodiscard]] bool affects(const WindowShape& shape, PopInstant now) const;
  /// True once after each read that found no generation key: somebody has to put one there.
  [[nodiscard]] bool take_missing_generation();
  /// What was asked over a connection that ended will be asked again.
  void connection_ended() { generation_is_missing_ = false; }

 private:
  static constexpr PopInstant kNever = PopInstant::min();

  std::optional<std::uint64_t> generation_;
  PopInstant generation_read_at_ = kNever;
  bool generation_is_missing_ = false;
  bool met_before_ = false;
  PopInstant lost_at_ = kNever;
};

}  // namespace popgate
