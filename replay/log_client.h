// SPDX-License-Identifier: Apache-2.0
//
// The client field of a log line: an address in any of the ways servers write it, or a host name.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "libclient/match/request.h"

namespace popgate {

/// `text` without port, brackets and zone: "[2001:db8::1%eth0]:443" becomes "2001:db8::1", "192.0.2.1:80" "192.0.2.1".
/// A part of the text that is an IPv6 address as it stands is left alone, although it might end in a port.
[[nodiscard]] std::string_view bare_client(std::string_view text);

/// True when the bare text is an IPv4 or IPv6 address.
[[nodiscard]] bool is_address(std::string_view bare, ClientAddress* out = nullptr);

/// True when the text could be a host name or an address: letters, digits, dots, hyphens, underscores, colons, and at
/// least one letter or digit.
[[nodiscard]] bool is_client_text(std::string_view text);

/// The address that stands for a client. A host name gets an address of its own in fd00::/8 (56 bits of its hash name
/// the /64), so that rules by client address tell host names apart as they would tell their addresses apart.
[[nodiscard]] ClientAddress client_address_of(std::string_view bare);

}  // namespace popgate
