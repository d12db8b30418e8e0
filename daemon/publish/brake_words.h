// SPDX-License-Identifier: Apache-2.0
//
// The write side of the brakes in the table's header (table_format.h): makes them say exactly what is off, store by
// store, while readers look.
//
// Each rule is turned off or on by one store (of its slot, or of the count that lets readers see it), and everything by
// one. A rule that stays off keeps its slot.
//
// The words outlive the daemon, and so they are the witness of an order that never reached the disk: the stamp beside
// them is that of the newest order they hold. A next daemon whose file knows only older orders (because the disk was
// full, or the file is damaged or gone) keeps off what the words say is off. In doubt the brakes stay on: a person
// stopped the blocking, and only a person may let it begin again unseen.
//
// Threads: one writer.
// Invariants: 1. A writer that stops between two stores leaves every rule either as before or as wanted.
// Limits: kTableRulesOffMax rules.
#pragma once

#include <cstddef>
#include <cstdint>

#include "daemon/mitigate/brakes.h"

namespace popgate {

/// The header's words: `all_off`, the count, the slots. Numbered, so that a test can stop a writer after every store.
class BrakeMemory {
 public:
  static constexpr std::size_t kAllOff = 0;
  static constexpr std::size_t kCount = 1;
  static constexpr std::size_t kFirstSlot = 2;

  virtual ~BrakeMemory() = default;
  [[nodiscard]] virtual std::uint32_t load(std::size_t word) const = 0;
  /// Release: whoever sees this store sees all earlier ones.
  virtual void store(std::size_t word, std::uint32_t value) = 0;
};

void write_brakes(BrakeMemory& memory, const BrakeEffect& wanted);
[[nodiscard]] BrakeEffect read_brakes(const BrakeMemory& memory);

}  // namespace popgate
