// SPDX-License-Identifier: Apache-2.0
//
// The optional white space around an element of a header's value (RFC 9110, section 5.6.3): blanks and tabs.
#pragma once

#include <string_view>

namespace popgate {

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace popgate
