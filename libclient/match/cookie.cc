// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/cookie.h"

#include <algorithm>

#include "libclient/match/header_text.h"

namespace popgate {

bool find_cookie(std::string_view header, std::string_view name, std::string_view& value) noexcept {
  while (!header.empty()) {
    const std::string_view pair = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || trimmed(pair.substr(0, equals)) != name) continue;
    value = trimmed(pair.substr(equals + 1));
    return true;
  }
  return false;
}

}  // namespace popgate
