// SPDX-License-Identifier: Apache-2.0
//
// The one form of a path that rules and keys know, out of a request target as it stands in the request line.
//
// Cut at `?` and `#`; of an absolute target (`http://host/path`) the authority is split off; `//`, `/./` and `/../`
// are resolved; percent-encoded bytes are decoded unless they are `/`, `?`, `#`, `%` or control characters, which keep
// their encoding, in upper case. Servers answer all these spellings alike, so a client must not be able to leave a
// rule by another one. Decoding goes beyond RFC 3986's unreserved characters for that reason: `/a%3Ab` and `/a:b` reach
// the same handler nearly everywhere.
//
// A target that needs none of this (nearly all) is returned as it is, after one pass over its bytes.
//
// Threads: pure; the buffer is the caller's.
// Invariants: 1. The work is linear in the target.
//             2. A target whose resolved path fits kPathBytesMax is resolved exactly, however long it is itself.
// Limits: a target that needs work and whose resolved path is longer than kPathBytesMax is cut there: exact paths do
//         not match it, prefixes and globs see its beginning.
#pragma once

#include <cstddef>
#include <string_view>

namespace popgate {

inline constexpr std::size_t kPathBytesMax = 4096;

struct PathBuffer {
  char bytes[kPathBytesMax];  // not zeroed
};

struct RequestTarget {
  std::string_view authority;  // of an absolute target, without user information; else empty
  std::string_view path;       // begins with `/`, unless the target is neither a path nor absolute: `*`, `host:port`
};

/// The views point into `target` or `buffer`. An empty target has an empty path.
[[nodiscard]] RequestTarget read_target(std::string_view target, PathBuffer& buffer) noexcept;

/// Just the path; for rules and typed values. `path` begins with `/`.
[[nodiscard]] std::string_view normal_path(std::string_view path, PathBuffer& buffer) noexcept;

}  // namespace popgate
