// SPDX-License-Identifier: Apache-2.0
//
// Durations as people write them: a whole number and its unit, `500ms`, `60s`, `5m`, `1h`, `2d`. A number without a
// unit is none: whether 60 means seconds or milliseconds is what such files get wrong.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace popgate {

/// Empty when the text is not a duration, or longer than a 64-bit count of microseconds.
[[nodiscard]] std::optional<std::chrono::microseconds> parse_duration(std::string_view text);

/// In the largest unit that divides it: 90 s is "90s", two weeks are "14d"; "us" where milliseconds do not do.
[[nodiscard]] std::string duration_text(std::chrono::microseconds duration);

}  // namespace popgate
