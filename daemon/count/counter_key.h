// SPDX-License-Identifier: Apache-2.0
//
// The name of one counter in memcached: the hits of one key in one slot.
//
//     pg1:<ring id, 8 hex digits>:{<22 characters of the key>}:<slot length in microseconds>:<slot>
//
// Only what stands between the braces is hashed for placement, so that all slots of a key live on one shard. The slot
// length is in the name because two windows number their slots differently.
//
// Threads: pure functions.
// Limits: kCounterKeyCharsMax characters, far below the 250 at which memcached refuses a key and twemproxy closes the
//         connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/count/placement.h"
#include "daemon/window.h"
#include "libclient/key.h"

namespace popgate {

inline constexpr std::size_t kCounterKeyCharsMax = 4 + 8 + 2 + kKeyTagChars + 2 + 20 + 1 + 20;

/// Writes the names of one key's counters: everything up to the slot once, then only the slot. 20 to 60 ns a name.
class CounterNames {
 public:
  CounterNames(CounterRingId ring, const Key& key, microseconds slot_length) noexcept;
  /// Valid until the next call.
  [[nodiscard]] std::string_view of(SlotIndex slot) noexcept;

 private:
  char text_[kCounterKeyCharsMax];
  std::size_t prefix_chars_ = 0;
};

/// As in every counter's name.
[[nodiscard]] std::string ring_text(CounterRingId ring);

/// A key of Popgate's own on the shard where `tag` lies: `pg1:<ring id>:{tag}:<purpose>`.
[[nodiscard]] std::string own_key(CounterRingId ring, std::string_view tag, std::string_view purpose);

}  // namespace popgate
