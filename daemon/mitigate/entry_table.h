// SPDX-License-Identifier: Apache-2.0
//
// The entries of this node by key and kind, each until no copy of it can live anywhere, with the digest over the live
// ones.
//
// An entry is live until its end, then *ended*: it blocks nothing, but still beats the copies that it replaced and
// those whose end another node computed a little later. After `keep_until` it is gone.
//
// Threads: the event loop's.
// Invariants: 1. The digest covers exactly the entries that are not marked ended.
//             2. One entry at most for each id.
// Limits: kept by the caller, who asks for the counts; memory is about 400 bytes an entry.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/mitigate/digest.h"
#include "daemon/mitigate/mitigation.h"

namespace popgate {

enum class EntryKind : std::uint8_t { kAutomatic = 0, kOperator = 1, kLift = 2 };
inline constexpr std::size_t kEntryKinds = 3;

[[nodiscard]] EntryKind kind_of(const Mitigation& mitigation);

struct EntryId {
  Key key;
  EntryKind kind = EntryKind::kAutomatic;
  friend auto operator<=>(const EntryId&, const EntryId&) = default;
};

struct Entry {
  Mitigation mitigation;
  HostInstant keep_until{};
  bool ended = false;
};

class EntryTable {
 public:
  [[nodiscard]] const Entry* find(const EntryId& id) const;
  /// Inserts or replaces.
  void put(Entry entry);
  void erase(const EntryId& id);
  /// Out of the digest, kept until its keep_until.
  void mark_ended(const EntryId& id);

  /// An entry whose next step (ending, or going) is due; empty when none is.
  [[nodiscard]] std::optional<EntryId> due(HostInstant now) const;
  /// Drops the ended entry of this kind that would go first. False when there is none.
  bool drop_ended(EntryKind kind);

  [[nodiscard]] std::size_t count(EntryKind kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::size_t ended_count(EntryKind kind) const { return ended_[static_cast<std::size_t>(kind)].size(); }
  [[nodiscard]] const Digest& digest() const { return digest_; }
  /// Of every entry, ended ones too, whose bucket's bit is set; lifts first, so that nobody who is told in this order
  /// hears of a decision without the lift that it knew.
  [[nodiscard]] std::vector<EntryId> ids(std::uint64_t buckets) const;
  void for_each(const std::function<void(const Entry&)>& visit) const;

 private:
  struct IdHash {
    std::size_t operator()(const EntryId& id) const noexcept {
      return KeyHash{}(id.key) + static_cast<std::size_t>(id.kind);
    }
  };
  using Deadlines = std::set<std::pair<HostInstant, EntryId>>;

  void link(const EntryId& id, const Entry& entry);
  void unlink(const EntryId& id, const Entry& entry);

  std::unordered_map<EntryId, Entry, IdHash> entries_;
  Deadlines live_;                            // by end
  std::array<Deadlines, kEntryKinds> ended_;  // by keep_until
  std::array<std::size_t, kEntryKinds> counts_{};
  Digest digest_;
};

}  // namespace popgate
