// SPDX-License-Identifier: Apache-2.0
//
// Client addresses: read from text, masked to a prefix, and found behind trusted proxies.
//
// Threads: pure functions; no allocation, no system call.
// Invariants: 1. An IPv4 address mapped into IPv6 (::ffff:a.b.c.d) is the IPv4 address, wherever it comes from.
//             2. Nothing to the left of the first hop that is not trusted is ever believed.
// Limits: kForwardedHopsMax hops of X-Forwarded-For are walked; the walk then ends at the last of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libclient/match/request.h"
#include "libclient/match/rules_view.h"

namespace popgate {

inline constexpr std::size_t kForwardedHopsMax = 32;

/// Reads `192.0.2.1` or `2001:db8::1`, nothing around it. False, and `out` unknown, for anything else.
[[nodiscard]] bool parse_ip(std::string_view text, ClientAddress& out) noexcept;

/// As popgate_parse_address: with or without brackets, port and zone: `192.0.2.1:80`, `[2001:db8::1%eth0]:80`.
[[nodiscard]] bool parse_address(std::string_view text, ClientAddress& out) noexcept;

/// The IPv4 address when `address` is a mapped one; unknown when its length is neither 4 nor 16; else itself.
[[nodiscard]] ClientAddress plain_address(const ClientAddress& address) noexcept;

/// The same with the bits after the prefix cleared.
void clear_after_prefix(ClientAddress& address, unsigned prefix_bits) noexcept;

/// A socket's peer and the X-Forwarded-For that it sent, if any.
struct Forwarded {
  std::string_view peer;
  std::string_view forwarded_for;
};

/// As popgate_client_address: the peer, or, when it is a trusted proxy of `rules`, the right-most hop that is not. When
/// every hop is trusted, the left-most. An element that is not an address ends the walk at the hop to its right.
/// False, and `out` unknown, when the peer is not an address.
[[nodiscard]] bool client_behind_proxies(const RulesView& rules, const Forwarded& from, ClientAddress& out) noexcept;

}  // namespace popgate
