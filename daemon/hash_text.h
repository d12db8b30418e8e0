// SPDX-License-Identifier: Apache-2.0
//
// How people see a 64-bit hash: 16 lower-case hexadecimal digits.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <string>

#include "libclient/hex.h"

namespace popgate {

[[nodiscard]] inline std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = kHexDigits[hash & 15];
  return text;
}

}  // namespace popgate
