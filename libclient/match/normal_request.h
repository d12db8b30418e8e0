// SPDX-License-Identifier: Apache-2.0
//
// A request in the form that rules and keys know: host and path normalised, method in upper case, client address plain.
//
// The authority of an absolute target stands above the Host header, as RFC 9112, section 3.2.2 has servers do it.
//
// Threads: belongs to one call; lives on its stack (about 5 KiB, not zeroed).
// Invariants: 1. An empty host, path or method counts as missing; so does an unknown client address.
// Limits: a method longer than kMethodBytesMax keeps its case.
#pragma once

#include <cstddef>
#include <string_view>

#include "libclient/match/request.h"
#include "libclient/match/request_host.h"
#include "libclient/match/request_target.h"

namespace popgate {

inline constexpr std::size_t kMethodBytesMax = 32;

class NormalRequest {
 public:
  explicit NormalRequest(const Request& request) noexcept;
  NormalRequest(const NormalRequest&) = delete;
  NormalRequest& operator=(const NormalRequest&) = delete;

  [[nodiscard]] std::string_view host() const noexcept { return host_; }
  [[nodiscard]] std::string_view path() const noexcept { return path_; }
  [[nodiscard]] std::string_view method() const noexcept { return method_; }
  [[nodiscard]] const ClientAddress& client() const noexcept { return client_; }
  /// `name` is lower case.
  [[nodiscard]] HeaderValue header(std::string_view name) const noexcept;
  [[nodiscard]] HeaderValue cookie(std::string_view name) const noexcept;

 private:
  [[nodiscard]] std::string_view upper(std::string_view method) noexcept;

  const Request& request_;
  std::string_view host_;
  std::string_view path_;
  std::string_view method_;
  ClientAddress client_;
  HostBuffer host_buffer_;
  PathBuffer path_buffer_;
  char method_buffer_[kMethodBytesMax];
};

}  // namespace popgate
