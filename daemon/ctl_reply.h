// SPDX-License-Identifier: Apache-2.0
//
// The head of an HTTP/1.1 reply, as far as popgatectl needs it: status, media type and length of the body.
//
// Threads: pure functions.
// Limits: a head of kCtlHeadBytesMax, a body of kCtlBodyBytesMax.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "daemon/result.h"

namespace popgate {

inline constexpr std::size_t kCtlHeadBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kCtlBodyBytesMax = std::size_t{1} << 30;

struct CtlReplyHead {
  int status = 0;
  bool json = false;
  std::size_t body_bytes = 0;
};

/// `head` is everything before the empty line. A reply without a Content-Length is refused: one that was cut short
/// could not be told from a whole one.
[[nodiscard]] Result<CtlReplyHead> parse_reply_head(std::string_view head);

}  // namespace popgate
