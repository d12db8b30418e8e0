// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/glob.h"

#include <cstring>

namespace popgate {
namespace {

constexpr std::string_view kWildcards = "*?";

struct Middle {
  std::uint64_t stays_anywhere = 0;  // states followed by `**`
  std::uint64_t stays_inside = 0;    // states followed by `*` or `**`: they stay on every byte but `/`
  unsigned steps = 0;                // consuming tokens: literals and `?`
};

/// Reads the pattern between head and tail; calls `step(state, byte)` for each token that consumes a byte.
template <typename Step>
Middle read_middle(std::string_view pattern, Step step) noexcept {
  Middle middle;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::uint64_t state = std::uint64_t{1} << (middle.steps & 63);
    if (pattern[i] != '*') {
      step(state, pattern[i]);
      ++middle.steps;
      continue;
    }
    middle.stays_inside |= state;
    if (i + 1 < pattern.size() && pattern[i + 1] == '*') {
      middle.stays_anywhere |= state;
      ++i;
    }
  }
  return middle;
}

std::string_view middle_of(std::string_view pattern, const GlobShape& shape) noexcept {
  return pattern.substr(shape.head_bytes, pattern.size() - shape.head_bytes - shape.tail_bytes);
}

/// State n is "the first n tokens have consumed what was read"; the word holds every state that is possible.
bool middle_matches(std::string_view pattern, std::string_view text) noexcept {
  std::uint64_t advances[256];
  std::memset(advances, 0, sizeof advances);
  std::uint64_t any = 0;
  const Middle middle = read_middle(pattern, [&](std::uint64_t state, char byte) {
    if (byte == '?')
      any |= state;
    else
      advances[static_cast<unsigned char>(byte)] |= state;
  });
  std::uint64_t states = 1;
  for (const char byte : text) {
    const bool slash = byte == '/';
    const std::uint64_t advancing = states & (advances[static_cast<unsigned char>(byte)] | (slash ? 0 : any));
    states = advancing << 1 | (states & (slash ? middle.stays_anywhere : middle.stays_inside));
    if (states == 0) return false;
  }
  return (states >> middle.steps & 1) != 0;
}

}  // namespace

bool read_glob(std::string_view pattern, GlobShape& shape) noexcept {
  const std::size_t first = pattern.find_first_of(kWildcards);
  if (first == std::string_view::npos || pattern.size() > UINT16_MAX) return false;
  const std::size_t last = pattern.find_last_of(kWildcards);
  shape.head_bytes = static_cast<std::uint16_t>(first);
  shape.tail_bytes = static_cast<std::uint16_t>(pattern.size() - last - 1);
  return read_middle(middle_of(pattern, shape), [](std::uint64_t, char) {}).steps <= kGlobStepsMax;
}

bool glob_matches(std::string_view pattern, const GlobShape& shape, std::string_view text) noexcept {
  const std::string_view head = pattern.substr(0, shape.head_bytes);
  const std::string_view tail = pattern.substr(pattern.size() - shape.tail_bytes);
  if (text.size() < head.size() + tail.size() || !text.starts_with(head) || !text.ends_with(tail)) return false;
  const std::string_view inner = text.substr(head.size(), text.size() - head.size() - tail.size());
  const std::string_view middle = middle_of(pattern, shape);
  if (middle == "**") return true;
  if (middle == "*") return inner.find('/') == std::string_view::npos;
  return middle_matches(middle, inner);
}

}  // namespace popgate
