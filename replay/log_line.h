// SPDX-License-Identifier: Apache-2.0
//
// Reads one line of a Common or Combined access log, with or without the virtual host in front:
//
//     [host[:port]] client ident user [time] "request" status bytes ["referer" "user agent"] [anything]
//
// A line is a record when a client and one instant can be read from it: these two make a hit. Damage behind them (a cut
// line, a stray quote, a request of TLS bytes) is tolerated, because dropping such lines would under-count exactly the
// clients that a log is replayed for. Tolerances are marked as lenient, with the reason.
//
// Threads: pure functions. A record only has views.
// Limits: the time is looked for in the first kHeadBytesMax bytes, and among kHeadWordsMax words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libclient/instant.h"

namespace popgate {

inline constexpr std::size_t kHeadBytesMax = 2048;
inline constexpr std::size_t kHeadWordsMax = 16;

/// Common is the first half of Combined: one grammar reads both.
enum class LogFormat : std::uint8_t { kCombined, kVhost };

enum class LineKind : std::uint8_t { kBlank, kComment, kRecord, kUnparsable };

struct AccessRecord {
  PopInstant time{};
  std::string_view client;  // without port, brackets and zone
  std::string_view host;    // the virtual host, with its port; empty when the line has none
  std::string_view request;
  std::string_view method;  // method and target: empty when the request is bad
  std::string_view target;
  std::string_view status;
  std::string_view referer;  // still escaped, as request and user_agent are; empty when absent or `-`
  std::string_view user_agent;
  bool request_bad = false;           // not METHOD SP TARGET [SP HTTP/n.n]; still a hit by that client
  const char* lenient_why = nullptr;  // a literal; null: the line follows the grammar strictly
};

struct ParsedLine {
  LineKind kind = LineKind::kUnparsable;
  const char* reason = nullptr;  // of an unparsable line; a literal
};

/// `line` without its newline. Any bytes. The views of `out` point into `line`, or into `scratch` when the line had to
/// be unwrapped first.
[[nodiscard]] ParsedLine parse_log_line(std::string_view line, LogFormat format, std::string& scratch,
                                        AccessRecord& out);

/// What one line says about its file's format: -1 plain, +1 with a virtual host, 0 nothing.
[[nodiscard]] int format_vote(std::string_view line);

/// Undoes the escapes that Apache and nginx write (\" \\ \n \t \xHH ...).
[[nodiscard]] std::string unescape_log_text(std::string_view text);

}  // namespace popgate
