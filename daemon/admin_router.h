// SPDX-License-Identifier: Apache-2.0
//
// Finds the handler of a method and path, and answers what has none: 404, 405 with the methods that there are, 400 for
// a malformed query.
//
// Threads: the event loop's.
// Invariants: 1. Every dispatch ends in an answer: the handler's, or an error's.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "daemon/admin_reply.h"
#include "daemon/admin_request.h"

namespace popgate {

using AdminHandler = std::function<void(const AdminRequest&, AdminReply)>;

class AdminRouter {
 public:
  /// What the transport knows of a request, not decoded. The views need only live during the call.
  struct Raw {
    std::string_view method;
    std::string_view path;
    std::string_view query;
    std::string body;
  };

  /// A method of a path has one handler.
  void route(std::string method, std::string path, AdminHandler handler);
  void dispatch(Raw raw, AdminReply reply) const;

 private:
  using Methods = std::map<std::string, AdminHandler, std::less<>>;
  std::map<std::string, Methods, std::less<>> paths_;
};

}  // namespace popgate
