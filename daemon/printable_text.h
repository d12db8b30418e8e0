// SPDX-License-Identifier: Apache-2.0
//
// Text of another process or from a file, made fit for a log line or a terminal: it can neither begin a line of its own
// nor move the cursor.
//
// Threads: pure functions.
// Invariants: 1. No result has a control character, of ASCII or of Unicode's C1.
//             2. printable_ascii and escaped_ascii give ASCII only.
// Limits: `bytes_max` of the text are shown; "..." stands for the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace popgate {

inline constexpr std::size_t kWholeText = std::string_view::npos;

/// '?' for what is not printable ASCII: for names, which have nothing else in them.
[[nodiscard]] std::string printable_ascii(std::string_view text, std::size_t bytes_max = kWholeText);
/// \xNN for what is not printable ASCII: for bytes of which every one may matter.
[[nodiscard]] std::string escaped_ascii(std::string_view text, std::size_t bytes_max = kWholeText);
/// \xNN for control characters; other UTF-8 stays as it is: for what people wrote.
[[nodiscard]] std::string escaped_controls(std::string_view text);

}  // namespace popgate
