// SPDX-License-Identifier: Apache-2.0
//
// A wire with a fault: passes TCP connections on to a port of this host, or stalls, or cuts them, or answers rubbish,
// or flips a bit of what it passes on; and keeps what the dialler said, when asked to.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/socket_transport.h"

struct bufferevent;

namespace popgate {

class TcpRelay {
 public:
  enum class Mode { kPass, kStall, kCut, kRubbish, kFlip };

  TcpRelay(EventLoop& loop, std::uint16_t target_port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  void set_mode(Mode mode);
  [[nodiscard]] std::uint16_t port() const { return listener_->address().port(); }
  /// From now on, what comes from the dialling side is kept: of the newest connection.
  void record() { recording_ = true; }
  [[nodiscard]] const std::string& recorded() const { return recorded_; }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  struct Pipe {
    TcpRelay* relay;
    bufferevent* near;
    bufferevent* far;
  };

  void on_accept(int descriptor);
  void close(Pipe& pipe);
  static void on_readable(bufferevent* bev, void* pipe);
  static void on_event(bufferevent* bev, short what, void* pipe);

  EventLoop& loop_;
  std::uint16_t target_port_;
  Mode mode_ = Mode::kPass;
  int accepted_ = 0;
  bool recording_ = false;
  std::string recorded_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace popgate
