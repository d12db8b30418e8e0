// SPDX-License-Identifier: Apache-2.0
#include "daemon/count/key_windows.h"

#include <algorithm>

#include "daemon/collect/ledger.h"

namespace popgate {
namespace {

std::vector<CountedSlot>::iterator first_from(std::vector<CountedSlot>& slots, SlotIndex slot) {
  return std::lower_bound(slots.begin(), slots.end(), slot,
                          [](const CountedSlot& held, SlotIndex wanted) { return held.slot < wanted; });
}

// As many as can touch a window at once.
std::size_t slots_of(const WindowShape& shape) { return shape.slots + 2; }

}  // namespace

KeyWindows::KeyWindows(Limits limits, ShardFunction shard_of, Ledger& ledger)
    : limits_(limits), shard_of_(std::move(shard_of)), ledger_(ledger) {}

WindowIndex KeyWindows::take(const HitSum& sum, const WindowShape& shape, PopInstant now) {
  const KeySlots slots(shape, sum.key);
  if (sum.slot < slots.first_touching(now)) {
    expired_hits_ += sum.hits;
    ledger_.add(sum.rule, LedgerColumn::kExpired, sum.hits);
    return kNoWindow;
  }
  const WindowIndex index = place_for(sum.key, sum.rule, shape);
  if (index == kNoWindow) {
    roomless_hits_ += sum.hits;
    ledger_.add(sum.rule, LedgerColumn::kDropped, sum.hits);
    return kNoWindow;
  }
  KeyWindow& window = windows_[index];
  if (!window.slots.empty() && window.slots.front().slot < slots.first_touching(now)) expire(index, now);
  window.shape = shape;  // the clock tolerance may have been reconfigured
  add_slot(window, std::min(sum.slot, slots.last_touching(now))).unsent += sum.hits;
  window.unsent += sum.hits;
  unsent_hits_ += sum.hits;
  settle_place(index);
  return index;
}

WindowIndex KeyWindows::hold(const Key& key, RuleNumber rule, const WindowShape& shape) {
  const WindowIndex index = place_for(key, rule, shape);
  if (index == kNoWindow) return kNoWindow;
  windows_[index].shape = shape;
  settle_place(index);
  return index;
}

WindowIndex KeyWindows::place_for(const Key& key, RuleNumber rule, const WindowShape& shape) {
  if (const WindowIndex held = find(key); held != kNoWindow) {
    const KeyWindow& window = windows_[held];
    const bool same_slots = window.shape.window == shape.window && window.shape.slot == shape.slot;
    if (window.rule == rule && same_slots) return held;
    // Keys are made from their rule's counter identity: only a worker that writes garbage gives one key two rules.
    // What is under way keeps the rule under which it was taken, so that every ledger row stays exact.
    if (!window.may_make_room) return kNoWindow;
    forget(held);
  }
  while (index_.size() >= limits_.keys_max || reserved_slots_ + slots_of(shape) > limits_.slots_max) {
    if (!make_room()) return kNoWindow;
  }
  WindowIndex index = 0;
  if (free_.empty()) {
    index = static_cast<WindowIndex>(windows_.size());
    windows_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  KeyWindow& window = windows_[index];
  window.key = key;
  window.rule = rule;
  window.shard = shard_of_(key);
  window.shape = shape;
  window.in_use = true;
  reserved_slots_ += slots_of(shape);
  index_.emplace(key, index);
  return index;
}

bool KeyWindows::make_room() {
  if (oldest_ == kNoWindow) return false;
  ++forgotten_keys_;
  forget(oldest_);
  return true;
}

void KeyWindows::forget(WindowIndex index) {
  unlink(index);
  index_.erase(windows_[index].key);
  reserved_slots_ -= slots_of(windows_[index].shape);
  windows_[index] = KeyWindow{};
  free_.push_back(index);
}

WindowIndex KeyWindows::find(const Key& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? kNoWindow : found->second;
}

CountedSlot* KeyWindows::slot_of(KeyWindow& window, SlotIndex slot) {
  const auto found = first_from(window.slots, slot);
  return found != window.slots.end() && found->slot == slot ? &*found : nullptr;
}

CountedSlot& KeyWindows::add_slot(KeyWindow& window, SlotIndex slot) {
  const auto found = first_from(window.slots, slot);
  if (found != window.slots.end() && found->slot == slot) return *found;
  CountedSlot fresh;
  fresh.slot = slot;
  return *window.slots.insert(found, fresh);
}

void KeyWindows::expire(WindowIndex index, PopInstant now) {
  KeyWindow& window = windows_[index];
  const KeySlots slots = window.key_slots();
  const SlotIndex first = slots.first_touching(now);
  // Slots ahead of the clock exist only after it stepped back. What is known of them is kept, for one window, until it
  // catches up. What is unsent there was made in the past, and sent it would count once more in the future.
  const SlotIndex present = slots.last_touching(now);
  const SlotIndex last = present + window.shape.slots + 2;
  if (window.slots.empty() || (window.slots.front().slot >= first && window.slots.back().slot <= present)) return;
  for (CountedSlot& slot : window.slots) {
    if (slot.slot < first) give_up_unsent(window, slot, LedgerColumn::kExpired, expired_hits_);
    if (slot.slot > present) give_up_unsent(window, slot, LedgerColumn::kDropped, ahead_hits_);
  }
  std::erase_if(window.slots, [&](const CountedSlot& slot) {
    return (slot.slot < first || slot.slot > last) && slot.in_flight == 0;  // else its reply has yet to be accounted
  });
  settle_place(index);
}

void KeyWindows::give_up_unsent(KeyWindow& window, CountedSlot& slot, LedgerColumn column, std::uint64_t& figure) {
  if (slot.unsent == 0) return;
  figure += slot.unsent;
  ledger_.add(window.rule, column, slot.unsent);
  window.unsent -= slot.unsent;
  unsent_hits_ -= slot.unsent;
  slot.unsent = 0;
}

void KeyWindows::sweep(std::size_t windows, PopInstant now) {
  for (std::size_t i = 0; i < std::min(windows, windows_.size()); ++i) {
    sweep_at_ = sweep_at_ + 1 < windows_.size() ? sweep_at_ + 1 : 0;
    const auto index = static_cast<WindowIndex>(sweep_at_);
    if (!windows_[index].in_use) continue;
    expire(index, now);
    if (windows_[index].may_make_room && windows_[index].slots.empty()) forget(index);
  }
}

void KeyWindows::drop_unsent() {
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    KeyWindow& window = windows_[i];
    if (!window.in_use || window.unsent == 0) continue;
    for (CountedSlot& slot : window.slots) give_up_unsent(window, slot, LedgerColumn::kDropped, clock_off_hits_);
    settle_place(static_cast<WindowIndex>(i));
  }
}

void KeyWindows::pin(WindowIndex index) {
  ++windows_[index].pins;
  settle_place(index);
}

void KeyWindows::unpin(WindowIndex index) {
  --windows_[index].pins;
  settle_place(index);
}

void KeyWindows::set_due(WindowIndex index, bool due) {
  windows_[index].due = due;
  settle_place(index);
}

// Keeps a window in the list of those that may make room exactly while nothing refers to it.
void KeyWindows::settle_place(WindowIndex index) {
  KeyWindow& window = windows_[index];
  const bool free_to_go = window.unsent == 0 && window.pins == 0 && !window.due;
  if (free_to_go == window.may_make_room) return;
  if (free_to_go) {
    link_as_newest(index);
  } else {
    unlink(index);
  }
}

void KeyWindows::link_as_newest(WindowIndex index) {
  KeyWindow& window = windows_[index];
  window.may_make_room = true;
  window.older = newest_;
  window.newer = kNoWindow;
  if (newest_ != kNoWindow) windows_[newest_].newer = index;
  newest_ = index;
  if (oldest_ == kNoWindow) oldest_ = index;
}

void KeyWindows::unlink(WindowIndex index) {
  KeyWindow& window = windows_[index];
  if (!window.may_make_room) return;
  (window.newer == kNoWindow ? newest_ : windows_[window.newer].older) = window.older;
  (window.older == kNoWindow ? oldest_ : windows_[window.older].newer) = window.newer;
  window.newer = window.older = kNoWindow;
  window.may_make_room = false;
}

std::uint64_t KeyWindows::begin_send(WindowIndex index, CountedSlot& slot) {
  const std::uint64_t hits = slot.unsent;
  slot.unsent = 0;
  slot.in_flight += hits;
  windows_[index].unsent -= hits;
  unsent_hits_ -= hits;
  in_flight_hits_ += hits;
  return hits;
}

// A slot keeps its place while anything of it is in flight, so it is always found.
CountedSlot* KeyWindows::leave_flight(WindowIndex index, SlotIndex slot, std::uint64_t hits) {
  CountedSlot* const held = slot_of(windows_[index], slot);
  POPGATE_ASSERT(held != nullptr && held->in_flight >= hits);
  held->in_flight -= hits;
  in_flight_hits_ -= hits;
  return held;
}

void KeyWindows::put_back(WindowIndex index, SlotIndex slot, std::uint64_t hits) {
  leave_flight(index, slot, hits)->unsent += hits;
  windows_[index].unsent += hits;
  unsent_hits_ += hits;
  settle_place(index);
}

void KeyWindows::delivered(WindowIndex index, SlotIndex slot, std::uint64_t hits) {
  leave_flight(index, slot, hits);
  ledger_.add(windows_[index].rule, LedgerColumn::kDelivered, hits);
}

void KeyWindows::uncertain(WindowIndex index, SlotIndex slot, std::uint64_t hits) {
  leave_flight(index, slot, hits)->uncertain += hits;
  ledger_.add(windows_[index].rule, LedgerColumn::kUncertain, hits);
}

void KeyWindows::refused(WindowIndex index, SlotIndex slot, std::uint64_t hits) {
  leave_flight(index, slot, hits);
  ledger_.add(windows_[index].rule, LedgerColumn::kDropped, hits);
}

bool KeyWindows::observe(CountedSlot& slot, std::uint64_t total, PopInstant asked_at, PopInstant lost_before) {
  const bool lost = total < slot.last_read && slot.read_at >= lost_before;
  slot.last_read = total;
  slot.known = std::max(slot.known, total);
  slot.read_at = asked_at;
  return lost;
}

bool KeyWindows::is_final(const KeyWindow& window, const CountedSlot& slot, const Finality& finality) {
  if (slot.read_at == CountedSlot::kNeverRead) return false;
  const PopInstant closed = window.key_slots().end(slot.slot) + window.shape.tolerance;
  return slot.read_at >= std::max(closed, finality.hot_since) + finality.settle + 2 * window.shape.tolerance;
}

bool KeyWindows::is_read_since(const KeyWindow& window, PopInstant asked_at, const Finality& finality) {
  const SlotIndex last = window.key_slots().last_touching(asked_at);
  return std::ranges::all_of(window.slots, [&](const CountedSlot& slot) {
    return slot.slot > last || slot.read_at >= asked_at || is_final(window, slot, finality);
  });
}

void KeyWindows::list_slots(const KeyWindow& window, std::vector<SlotCount>& out) {
  out.clear();
  for (const CountedSlot& slot : window.slots) {
    const SlotCount count{slot.slot, slot.known, slot.unsent, slot.in_flight + slot.uncertain};
    if (count.known + count.unsent + count.hidden > 0) out.push_back(count);
  }
}

void KeyWindows::visit(const MetricVisitor& visitor) const {
  const auto state = [&](std::string_view name, std::string_view unit, std::string_view meaning, std::uint64_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), false, {}, {}});
  };
  const auto count = [&](std::string_view name, std::string_view unit, std::string_view meaning, std::uint64_t value) {
    visitor({name, unit, meaning, static_cast<double>(value), true, {}, {}});
  };
  state("popgate_count_keys_held", "keys", "Keys whose windows are held.", key_count());
  state("popgate_count_hits_unsent", "hits", "Hits that wait for their shard.", unsent_hits_);
  state("popgate_count_hits_in_flight", "hits", "Hits sent and not answered yet.", in_flight_hits_);
  count("popgate_count_keys_forgotten", "keys", "Keys that made room for others, the coldest first.", forgotten_keys_);
  count("popgate_count_hits_expired", "hits", "Hits whose slot left the window before they were sent.", expired_hits_);
  count("popgate_count_hits_ahead_dropped", "hits", "Unsent hits stamped later than the clock: it was set back.",
        ahead_hits_);
  count("popgate_count_hits_clock_off_dropped", "hits",
        "Hits held back while this node's clock was off, or stamped before it was set: judged here, and never counted.",
        clock_off_hits_);
  count("popgate_count_hits_without_room", "hits", "Hits dropped because no key could make room: raise keys_max.",
        roomless_hits_);
}

}  // namespace popgate
