// SPDX-License-Identifier: Apache-2.0
//
// Words for people: what is left of a duration, and when that is on their own clock.
//
// Threads: pure functions, but for the time zone, which is the process's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "libclient/instant.h"

namespace popgate {

/// The two largest units, "4m 12s", "2d 3h"; below a minute "12s", below a second "350ms". Seconds are rounded up: what
/// still lasts is never "0s".
[[nodiscard]] std::string remaining_text(milliseconds duration);

/// `2026-11-29T02:14:22.123Z`; empty when it is not such a time.
[[nodiscard]] std::optional<PopInstant> parse_utc(std::string_view text);

/// In the local time zone: "03:14:22" on the day of `now`, else "2026-11-30 03:14:22".
[[nodiscard]] std::string local_time(PopInstant time, PopInstant now);
/// Its abbreviation, "CET".
[[nodiscard]] std::string local_zone(PopInstant now);

}  // namespace popgate
