// SPDX-License-Identifier: Apache-2.0
//
// A client that says to a mesh whatever a test wants, and keeps what it hears.
//
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "daemon/openssl_handle.h"
#include "daemon/peers/frame.h"
#include "daemon/peers/wire.h"

struct bufferevent;
struct event_base;

namespace popgate {

class RawPeer {
 public:
  RawPeer(event_base* base, std::uint16_t port);
  /// Over this connection's TLS, whatever it speaks and shows.
  RawPeer(event_base* base, std::uint16_t port, openssl::Handle<SSL> ssl);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void send_bytes(std::string_view bytes);
  void send(const wire::Message& message) { send_bytes(frame_of(wire::encode(message))); }

  [[nodiscard]] bool is_connected() const { return connected_; }
  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] const std::vector<wire::Message>& heard() const { return heard_; }
  /// The first message of a kind; null: none yet.
  template <typename Kind>
  [[nodiscard]] const Kind* heard_first() const {
    for (const wire::Message& message : heard_) {
      if (const auto* kind = std::get_if<Kind>(&message)) return kind;
    }
    return nullptr;
  }

 private:
  RawPeer(bufferevent* bev, std::uint16_t port);
  void on_readable();

  bufferevent* bev_;
  FrameReader reader_;
  std::vector<wire::Message> heard_;
  bool connected_ = false;
  bool closed_ = false;
};

}  // namespace popgate
