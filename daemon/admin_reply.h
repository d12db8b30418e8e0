// SPDX-License-Identifier: Apache-2.0
//
// The answer that one admin request waits for: given at once or later, from wherever the handler took it.
//
// It knows nothing of HTTP's transport, only a sink; so handlers can be tested without a socket.
//
// Threads: the event loop's.
// Invariants: 1. The sink is called exactly once: by the first answer, or with 500 when the last copy of a reply is
//                dropped unanswered.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace popgate {

struct AdminAnswer {
  int status = 200;
  std::string content_type;
  std::string text;
  std::string allow;  // of a 405: the methods that the path has
};

/// Copies stand for the same one answer, so that a reply can be captured by a std::function. Answering twice is a bug.
/// Safe to answer when the client or the server is gone: the answer is then dropped.
class AdminReply {
 public:
  using Sink = std::function<void(AdminAnswer)>;
  explicit AdminReply(Sink sink);

  void json(int status, std::string text);
  /// The Prometheus text format's media type, which is plain text to everybody else.
  void plain(int status, std::string text);
  /// {"error": sentence}; `allow` only with 405.
  void error(int status, const std::string& sentence, std::string allow = {});
  void answer(AdminAnswer answer);

 private:
  struct Pending;
  std::shared_ptr<Pending> pending_;
};

/// {"error": sentence}; bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string error_json(const std::string& sentence);

}  // namespace popgate
