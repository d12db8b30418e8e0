// SPDX-License-Identifier: Apache-2.0
//
// A Stream over one of libevent's bufferevents.
//
// Threads: the event loop's.
// Invariants: 1. The bufferevent is freed with the stream and calls nobody after it, also when the owner destroys the
//                stream within a call.
// Limits: one turn of the loop takes and gives a bounded number of bytes, so that one busy stream leaves the others
//         their turn (bufferevent_stream.cc); what waits to be sent is for the owner to bound.
#pragma once

#include <optional>

#include "daemon/socket_address.h"
#include "daemon/stream.h"

struct bufferevent;

namespace popgate {

class BuffereventStream : public Stream {
 public:
  /// Takes over the bufferevent. With an address, start() connects to it; without, it is connected already.
  BuffereventStream(bufferevent* event, std::optional<SocketAddress> address);
  ~BuffereventStream() override;
  BuffereventStream(const BuffereventStream&) = delete;
  BuffereventStream& operator=(const BuffereventStream&) = delete;

  void start(StreamOwner& owner) override;
  void write(std::string_view bytes) override;
  void flush() override;
  [[nodiscard]] std::size_t unsent_bytes() const override;
  [[nodiscard]] std::string_view peek() override;
  void consume(std::size_t bytes) override;
  [[nodiscard]] std::optional<microseconds> round_trip() const override;

 protected:
  [[nodiscard]] bufferevent* event() const { return event_; }
  /// The last step of start().
  virtual void connect();
  virtual void on_connected();
  /// Why a connection ended that libevent reports as an error.
  [[nodiscard]] virtual std::string error_text();

 private:
  static void on_event(bufferevent* event, short what, void* self);

  bufferevent* event_;
  std::optional<SocketAddress> address_;
  StreamOwner* owner_ = nullptr;
};

}  // namespace popgate
