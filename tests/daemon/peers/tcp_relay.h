// SPDX-License-Identifier: Apache-2.0
//
// A wire with a fault: passes TCP connections on to a port of this host, or stalls, or cuts them, or answers rubbish.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/socket_transport.h"

struct bufferevent;

namespace popgate {

class TcpRelay {
 public:
  enum class Mode { kPass, kStall, kCut, kRubbish };

  TcpRelay(EventLoop& loop, std::uint16_t target_port);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  void set_mode(Mode mode);
  [[nodiscard]] std::uint16_t port() const { return listener_->address().port(); }
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
  std::vector<std::unique_ptr<Pipe>> pipes_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace popgate
