// SPDX-License-Identifier: Apache-2.0
//
// One request of a log, on its own: it owns the bytes that its views point into, so that it can be reordered and kept.
//
// Threads: a value, moved but not copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "libclient/instant.h"
#include "libclient/match/request.h"

namespace popgate {

struct LoggedRequest {
  PopInstant time{};
  ClientAddress client;          // a host name has a stand-in, see client_address_of
  std::string_view client_text;  // as written, without port, brackets and zone
  std::string_view method;       // method and path: empty when the request was none
  std::string_view path;         // with its query; unescaped
  std::string_view host;         // empty when the log does not say
  std::string_view referer;      // empty: not sent
  std::string_view user_agent;   // empty: not sent
  std::unique_ptr<char[]> text;
  std::size_t text_bytes = 0;

  /// Copies the strings that the views of `from` point to.
  [[nodiscard]] static LoggedRequest owning(const LoggedRequest& from);
};

/// What the matcher and libclient see. Its header function answers for user-agent and referer. Both `logged` and the
/// result of the call must stay where they are while the request is used.
[[nodiscard]] Request request_of(const LoggedRequest& logged);

/// Where requests come from, in the order of time.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  [[nodiscard]] virtual bool next(LoggedRequest& out) = 0;
};

}  // namespace popgate
