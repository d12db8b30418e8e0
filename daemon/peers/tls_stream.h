// SPDX-License-Identifier: Apache-2.0
//
// A Stream under TLS: connected when the handshake is over and the other side has proven its name.
//
// An alert that refuses the other side must reach it: before an accepted connection whose handshake failed is closed,
// what the dialler has sent meanwhile is taken, because the kernel answers unread bytes with a reset, and that may
// overtake the alert. For the same reason a dialler that cannot write looks for an alert before it gives up.
//
// Threads: the event loop's.
// Invariants: 1. stream_connected only when both sides' certificates were accepted here; in TLS 1.3 the other side may
//                still refuse ours.
// Limits: the owner bounds the time of the handshake; kLingerBytesMax are taken before a close.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/bufferevent_stream.h"
#include "daemon/peers/tls_context.h"

struct event_base;

namespace popgate {

inline constexpr std::size_t kLingerBytesMax = std::size_t{64} * 1024;

class TlsStream final : public BuffereventStream {
 public:
  struct Events {
    std::function<void()> on_handshake;
    std::function<void(const TlsFailure&)> on_failure;
    std::function<void(TlsStream&)> on_gone;
  };
  struct Setup {
    std::unique_ptr<TlsHandshake> handshake;
    openssl::Handle<SSL> ssl;              // made for that handshake
    std::optional<SocketAddress> address;  // dialled
    int descriptor = -1;                   // accepted
  };

  /// Null when there is no memory or descriptor left. `events` outlives the stream.
  [[nodiscard]] static std::unique_ptr<TlsStream> make(event_base* base, Setup setup, const Events& events);
  ~TlsStream() override;

  void flush() override;
  [[nodiscard]] bool is_refused() const override { return refused_; }
  [[nodiscard]] std::string proven_name() const override { return proven_; }

  /// Ends the connection when its certificate would be refused now.
  void judge_again(const TlsCredentials& credentials, PopInstant now);

 protected:
  void connect() override;
  void on_connected() override;
  [[nodiscard]] std::string error_text() override;

 private:
  TlsStream(bufferevent* event, SSL* ssl, Setup setup, const Events& events);
  [[nodiscard]] std::optional<TlsFailure> failure();
  void linger() const;

  const Events& events_;
  std::unique_ptr<TlsHandshake> handshake_;
  SSL* ssl_;  // the bufferevent's
  bool dialled_;
  bool ended_ = false;  // by an error, after which OpenSSL must not be asked to send anything
  bool refused_ = false;
  bool is_plain_ = false;  // the other side does not speak TLS
  std::string proven_;
  std::optional<TlsFailure> distrusted_;
};

}  // namespace popgate
