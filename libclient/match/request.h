// SPDX-License-Identifier: Apache-2.0
//
// One request as the matcher sees it: views into the embedder's memory, nothing copied.
//
// Threads: a value, used by one thread during one call.
// Invariants: 1. No view outlives the call that it is passed to.
//             2. A header that was not sent and a header that was sent empty are told apart.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace popgate {

/// A client address in network order: 4 bytes, or 16; bytes == 0 means that it is not known.
struct ClientAddress {
  std::uint8_t octets[16] = {};
  std::uint8_t bytes = 0;
};

/// The value of a header. `present` false: the request has no such header.
struct HeaderValue {
  std::string_view value;
  bool present = false;
};

struct Request {
  std::string_view method;
  std::string_view host;  // as in the Host header: may carry a port, upper case or a trailing dot
  std::string_view path;  // as in the request line: may carry a query
  ClientAddress client;

  /// Asked only when a matching rule needs a header or a cookie. May be null: then every header is missing.
  /// `name` is lower case. Returns false when the request has no such header.
  bool (*header)(void* context, std::string_view name, std::string_view& value) = nullptr;
  void* header_context = nullptr;
};

}  // namespace popgate
