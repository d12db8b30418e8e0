// SPDX-License-Identifier: Apache-2.0
#include "libclient/match/normal_request.h"

#include <algorithm>

#include "libclient/match/client_address.h"
#include "libclient/match/cookie.h"

namespace popgate {
namespace {

bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

}  // namespace

// The buffers are left as they are: only what was written to them is read.
NormalRequest::NormalRequest(const Request& request) noexcept
    : request_(request), client_(plain_address(request.client)) {
  const RequestTarget target = read_target(request.path, path_buffer_);
  path_ = target.path;
  host_ = normal_host(target.authority.empty() ? request.host : target.authority, host_buffer_);
  method_ = upper(request.method);
}

std::string_view NormalRequest::upper(std::string_view method) noexcept {
  if (method.size() > kMethodBytesMax || std::none_of(method.begin(), method.end(), is_lower)) return method;
  std::transform(method.begin(), method.end(), method_buffer_,
                 [](char c) { return static_cast<char>(is_lower(c) ? c - ('a' - 'A') : c); });
  return {method_buffer_, method.size()};
}

HeaderValue NormalRequest::header(std::string_view name) const noexcept {
  HeaderValue found;
  found.present = request_.header != nullptr && request_.header(request_.header_context, name, found.value);
  return found;
}

HeaderValue NormalRequest::cookie(std::string_view name) const noexcept {
  const HeaderValue cookies = header("cookie");
  HeaderValue found;
  found.present = cookies.present && find_cookie(cookies.value, name, found.value);
  return found;
}

}  // namespace popgate
