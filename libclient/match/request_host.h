// SPDX-License-Identifier: Apache-2.0
//
// The one form of a host that rules and keys know: lower case, without port and trailing dot; an IPv6 literal keeps its
// brackets. Otherwise a client could pick a counter by the way it spells the host.
//
// Threads: pure; the buffer is the caller's.
// Limits: kHostBytesMax. Of a longer host the last kHostBytesMax bytes stand for it: no exact host of a rule is that
//         long, and a suffix is still recognised.
#pragma once

#include <cstddef>
#include <string_view>

namespace popgate {

inline constexpr std::size_t kHostBytesMax = 512;

struct HostBuffer {
  char bytes[kHostBytesMax];  // not zeroed
};

/// `host` is a Host header or an authority without user information. The result points into `host` or `buffer`.
[[nodiscard]] std::string_view normal_host(std::string_view host, HostBuffer& buffer) noexcept;

}  // namespace popgate
