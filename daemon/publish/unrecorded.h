// SPDX-License-Identifier: Apache-2.0
//
// Entries in force that the record file could not take yet.
//
// Threads: the event loop's.
// Invariants: 1. Of one entry the latest version waits, once.
// Limits: kUnrecordedMax. At the bound one that has ended makes room, the earliest first: a restart need not know it.
//         (Had the file a longer version of it, that comes back with the next daemon, and the peers shorten it again.)
//         When all are in force, a new one is refused.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "daemon/mitigate/mitigation.h"
#include "daemon/mitigate/mitigations.h"

namespace popgate {

inline constexpr std::size_t kUnrecordedMax = 65'536;

class Unrecorded {
 public:
  /// False: no room.
  [[nodiscard]] bool put(const Mitigation& mitigation, HostInstant now);
  void erase(const EntryId& id);
  [[nodiscard]] bool contains(const EntryId& id) const { return entries_.contains(id); }
  /// Valid until the next change; null: it does not wait.
  [[nodiscard]] const Mitigation* find(const EntryId& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Any one of them; there must be one.
  [[nodiscard]] const Mitigation& first() const { return entries_.begin()->second; }

 private:
  std::map<EntryId, Mitigation> entries_;
  std::set<std::pair<HostInstant, EntryId>> ends_;  // of the same entries
};

}  // namespace popgate
