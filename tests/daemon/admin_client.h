// SPDX-License-Identifier: Apache-2.0
//
// A client of the admin socket that says exactly the bytes it is told to, on the loop of the server that it speaks to:
// every wait turns that loop, so that server and client need no threads.
//
// Threads: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "daemon/event_loop.h"
#include "libclient/file_descriptor.h"

namespace popgate {

/// Turns the loop until the condition holds; false when the deadline passes first.
[[nodiscard]] bool turn_until(EventLoop& loop, const std::function<bool()>& condition,
                              std::chrono::milliseconds deadline = std::chrono::seconds(10));

class AdminClient {
 public:
  /// Throws when it cannot connect.
  AdminClient(EventLoop& loop, const std::string& socket_path);

  /// All of it; false when the server closes first.
  [[nodiscard]] bool send(const std::string& bytes);
  /// As many of these bytes as the server takes now.
  [[nodiscard]] std::size_t offer(const std::string& bytes);
  /// Head and body of the next reply, by its Content-Length; what came when the server closes first.
  [[nodiscard]] std::string reply();
  /// Everything until the server closes.
  [[nodiscard]] std::string rest();
  /// Takes at most so many bytes that are there now.
  std::size_t take(std::size_t bytes_max);
  [[nodiscard]] bool closed() const { return closed_; }
  void leave() { socket_.reset(); }

 private:
  EventLoop& loop_;
  FileDescriptor socket_;
  std::string received_;
  bool closed_ = false;
};

[[nodiscard]] int status_of(const std::string& reply);
[[nodiscard]] std::string body_of(const std::string& reply);

}  // namespace popgate
