// SPDX-License-Identifier: Apache-2.0
//
// One question to the daemon over its admin socket, and the answer: a blocking HTTP client as small as a tool needs it.
//
// Threads: any; a call shares nothing.
// Limits: each step (connecting, sending, the next bytes of the answer) waits `timeout` at most; sizes as in
// ctl_reply.h.
#pragma once

#include <chrono>
#include <string>

#include "daemon/result.h"

namespace popgate {

struct CtlRequest {
  std::string method = "GET";
  std::string target;  // path and query, percent-encoded
  std::string body;
};

struct CtlReply {
  int status = 0;
  bool json = false;
  std::string body;
};

/// The error says which socket, what went wrong, and what to check.
[[nodiscard]] Result<CtlReply> ask_daemon(const std::string& socket_path, const CtlRequest& request,
                                          std::chrono::milliseconds timeout);

}  // namespace popgate
