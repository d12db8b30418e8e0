// SPDX-License-Identifier: Apache-2.0
//
// Finds one cookie in a Cookie header (RFC 6265, section 4.2): `name=value` pairs parted by `;`.
//
// Names are compared byte by byte; the first pair of the name wins, as it does in nearly every server; a value keeps
// its quotes. A pair without `=` is a nameless cookie and never found.
//
// Threads: pure. Limits: linear in the header.
#pragma once

#include <string_view>

namespace popgate {

/// False when there is no such cookie; `name=` is one with an empty value.
[[nodiscard]] bool find_cookie(std::string_view header, std::string_view name, std::string_view& value) noexcept;

}  // namespace popgate
