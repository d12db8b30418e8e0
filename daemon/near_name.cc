// SPDX-License-Identifier: Apache-2.0
#include "daemon/near_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace popgate {
namespace {

constexpr std::size_t kNameBytesMax = 64;

/// Damerau-Levenshtein distance with adjacent swaps (optimal string alignment): three rows of the table at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::size_t, kNameBytesMax + 1> before{};
  std::array<std::size_t, kNameBytesMax + 1> last{};
  std::array<std::size_t, kNameBytesMax + 1> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string_view near_name(std::string_view written, std::span<const std::string_view> known) {
  std::string_view nearest;
  std::size_t least = kNameBytesMax;
  for (const std::string_view name : known) {
    if (written.size() > kNameBytesMax || name.size() > kNameBytesMax) continue;
    const std::size_t steps = distance(written, name);
    if (steps > std::max<std::size_t>(1, name.size() / 3) || steps >= least) continue;
    nearest = name;
    least = steps;
  }
  return nearest;
}

}  // namespace popgate
