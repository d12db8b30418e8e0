// SPDX-License-Identifier: Apache-2.0
#include "replay/logged_request.h"

#include <cstring>

namespace popgate {
namespace {

bool header_of(void* context, std::string_view name, std::string_view& value) {
  const auto& logged = *static_cast<const LoggedRequest*>(context);
  if (name == "user-agent") {
    value = logged.user_agent;
  } else if (name == "referer") {
    value = logged.referer;
  } else {
    return false;
  }
  return !value.empty();
}

std::string_view copy(char*& to, std::string_view from) {
  if (from.empty()) return {};
  std::memcpy(to, from.data(), from.size());
  const std::string_view copied(to, from.size());
  to += from.size();
  return copied;
}

}  // namespace

LoggedRequest LoggedRequest::owning(const LoggedRequest& from) {
  LoggedRequest own;
  own.time = from.time;
  own.client = from.client;
  own.text_bytes = from.client_text.size() + from.method.size() + from.path.size() + from.host.size() +
                   from.referer.size() + from.user_agent.size();
  own.text = std::make_unique_for_overwrite<char[]>(own.text_bytes);
  char* to = own.text.get();
  own.client_text = copy(to, from.client_text);
  own.method = copy(to, from.method);
  own.path = copy(to, from.path);
  own.host = copy(to, from.host);
  own.referer = copy(to, from.referer);
  own.user_agent = copy(to, from.user_agent);
  return own;
}

Request request_of(const LoggedRequest& logged) {
  Request request;
  request.method = logged.method;
  request.host = logged.host;
  request.path = logged.path;
  request.client = logged.client;
  request.header = header_of;
  request.header_context = const_cast<LoggedRequest*>(&logged);  // only read; the callback's type is not const
  return request;
}

}  // namespace popgate
