// SPDX-License-Identifier: Apache-2.0
//
// Hexadecimal digits, to and from numbers.
//
// Threads: pure.
#pragma once

namespace popgate {

inline constexpr char kHexDigits[] = "0123456789abcdef";

/// 0 to 15; -1: not a hexadecimal digit of either case.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace popgate
