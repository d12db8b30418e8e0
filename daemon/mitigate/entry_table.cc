// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/entry_table.h"

#include <algorithm>

#include "daemon/mitigate/precedence.h"
#include "daemon/result.h"

namespace popgate {

EntryKind kind_of(const Mitigation& mitigation) {
  if (mitigation.lifted) return EntryKind::kLift;
  return mitigation.space == Space::kOperator ? EntryKind::kOperator : EntryKind::kAutomatic;
}

const Entry* EntryTable::find(const EntryId& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

void EntryTable::link(const EntryId& id, const Entry& entry) {
  if (entry.ended) {
    ended_[static_cast<std::size_t>(id.kind)].emplace(entry.keep_until, id);
  } else {
    live_.emplace(entry.mitigation.until, id);
    digest_.add(id.key, entry_hash(entry.mitigation));
  }
}

void EntryTable::unlink(const EntryId& id, const Entry& entry) {
  if (entry.ended) {
    ended_[static_cast<std::size_t>(id.kind)].erase({entry.keep_until, id});
  } else {
    live_.erase({entry.mitigation.until, id});
    digest_.remove(id.key, entry_hash(entry.mitigation));
  }
}

void EntryTable::put(Entry entry) {
  const EntryId id{entry.mitigation.key, kind_of(entry.mitigation)};
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    link(id, entry);
    entries_.emplace(id, std::move(entry));
    ++counts_[static_cast<std::size_t>(id.kind)];
    return;
  }
  unlink(id, found->second);
  link(id, entry);
  found->second = std::move(entry);
}

void EntryTable::erase(const EntryId& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  unlink(id, found->second);
  entries_.erase(found);
  --counts_[static_cast<std::size_t>(id.kind)];
}

void EntryTable::mark_ended(const EntryId& id) {
  const auto found = entries_.find(id);
  POPGATE_ASSERT(found != entries_.end());
  unlink(id, found->second);
  found->second.ended = true;
  link(id, found->second);
}

std::optional<EntryId> EntryTable::due(HostInstant now) const {
  if (!live_.empty() && live_.begin()->first <= now) return live_.begin()->second;
  for (const Deadlines& ended : ended_) {
    if (!ended.empty() && ended.begin()->first <= now) return ended.begin()->second;
  }
  return std::nullopt;
}

bool EntryTable::drop_ended(EntryKind kind) {
  const Deadlines& ended = ended_[static_cast<std::size_t>(kind)];
  if (ended.empty()) return false;
  erase(EntryId(ended.begin()->second));  // a copy: erase() removes the node that holds it
  return true;
}

std::vector<EntryId> EntryTable::ids(std::uint64_t buckets) const {
  std::vector<EntryId> ids;
  if (buckets == kAllBuckets) ids.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) {
    if ((buckets >> digest_bucket(id.key) & 1) != 0) ids.push_back(id);
  }
  std::partition(ids.begin(), ids.end(), [](const EntryId& id) { return id.kind == EntryKind::kLift; });
  return ids;
}

void EntryTable::for_each(const std::function<void(const Entry&)>& visit) const {
  for (const auto& [id, entry] : entries_) visit(entry);
}

}  // namespace popgate
