// SPDX-License-Identifier: Apache-2.0
//
// Reads the time of an access log line.
//
// A time without a zone offset is refused and not guessed: the same digits are a different instant in every zone, and a
// wrong guess moves every window. Everything else that names exactly one instant is read; what is not the usual
// `10/Oct/2000:13:55:36 -0700` is marked as odd, so that the statistics show it.
//
// Threads: pure functions.
// Invariants: 1. A result lies in 1970 .. 2100 UTC, give or take the zone offset.
//             2. Days are those of the proleptic Gregorian calendar; second 60 is the first of the next minute.
#pragma once

#include <string>
#include <string_view>

#include "libclient/instant.h"

namespace popgate {

struct LogTime {
  PopInstant time{};
  bool odd = false;  // one instant, but not written the usual way
};

/// Null on success; otherwise a literal that says what is wrong with `text` (what stands between the brackets).
[[nodiscard]] const char* parse_log_time(std::string_view text, LogTime& out);

/// True when `text` begins like a time, right or wrong: what tells a time's bracket from any other.
[[nodiscard]] bool begins_like_log_time(std::string_view text);

/// "2015-05-17T10:05:00Z"; with a fraction of up to six digits when there is one.
[[nodiscard]] std::string log_time_text(PopInstant time);

}  // namespace popgate
