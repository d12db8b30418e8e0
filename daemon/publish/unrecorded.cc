// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/unrecorded.h"

namespace popgate {

bool Unrecorded::put(const Mitigation& mitigation, HostInstant now) {
  const EntryId id{mitigation.key, kind_of(mitigation)};
  erase(id);
  if (entries_.size() >= kUnrecordedMax) {
    const auto earliest = ends_.begin();
    if (earliest->first > now) return false;
    erase(EntryId(earliest->second));
  }
  entries_.emplace(id, mitigation);
  ends_.emplace(mitigation.until, id);
  return true;
}

void Unrecorded::erase(const EntryId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ends_.erase({found->second.until, id});
  entries_.erase(found);
}

}  // namespace popgate
