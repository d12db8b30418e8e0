// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/memory_store.h"

#include "daemon/collect/ledger.h"
#include "daemon/rules.h"

namespace popgate {

MemoryStore::MemoryStore(Setup setup, TotalsFunction totals)
    : setup_(std::move(setup)),
      totals_(std::move(totals)),
      intake_(*setup_.ledger),
      windows_(
          {setup_.keys_max, setup_.keys_max * kSlotsPerKey}, [](const Key&) { return ShardIndex{0}; }, *setup_.ledger) {
}

void MemoryStore::submit(std::span<const HitSum> sums, PopInstant now) {
  ++flush_number_;
  intake_.take(sums, *setup_.rules, windows_, now, [&](WindowIndex index) {
    if (windows_.at(index).batch != flush_number_) {
      windows_.at(index).batch = flush_number_;
      windows_.pin(index);
      submitted_.push_back(index);
    }
    deliver(index, now);
  });
  // All of the flush is counted before anything is judged, as with a batch to memcached.
  for (const WindowIndex index : submitted_) read_and_report(index, now);
  for (const WindowIndex index : submitted_) windows_.unpin(index);
  submitted_.clear();
}

void MemoryStore::deliver(WindowIndex index, PopInstant now) {
  KeyWindow& window = windows_.at(index);
  for (CountedSlot& slot : window.slots) {
    if (slot.unsent == 0) continue;
    const std::uint64_t hits = windows_.begin_send(index, slot);
    setup_.counters->add({window.key, slot.slot, hits}, window.shape, now);
    windows_.delivered(index, slot.slot, hits);
  }
}

void MemoryStore::read_and_report(WindowIndex index, PopInstant now) {
  KeyWindow& window = windows_.at(index);
  const KeySlots slots = window.key_slots();
  for (SlotIndex slot = slots.first_touching(now); slot <= slots.last_touching(now); ++slot) {
    const std::uint64_t total = setup_.counters->total(window.key, slot);
    CountedSlot* const held = KeyWindows::slot_of(window, slot);
    if (held == nullptr && total == 0) continue;
    // That a total fell, after an eviction, is what the counters themselves tell.
    (void)KeyWindows::observe(held != nullptr ? *held : KeyWindows::add_slot(window, slot), total, now, now);
  }
  KeyWindows::list_slots(window, slot_counts_);
  totals_({.key = window.key,
           .rule = window.rule,
           .slots = slot_counts_,
           .fresh = true,
           .counters_lost = setup_.counters->counters_lost(window.shape, now)},
          now);
}

void MemoryStore::tick(PopInstant now) { windows_.sweep(kSweptPerTick, now); }

std::vector<SlotCount> MemoryStore::slots_of(const Key& key) const {
  std::vector<SlotCount> slots;
  const WindowIndex index = windows_.find(key);
  if (index != kNoWindow) KeyWindows::list_slots(windows_.at(index), slots);
  return slots;
}

bool MemoryStore::counters_lost(const Key& key, PopInstant now) const {
  const WindowIndex index = windows_.find(key);
  return index != kNoWindow && setup_.counters->counters_lost(windows_.at(index).shape, now);
}

void MemoryStore::visit(const MetricVisitor& visitor) const {
  windows_.visit(visitor);
  setup_.counters->visit(visitor);
  intake_.visit(visitor);
}

}  // namespace popgate
