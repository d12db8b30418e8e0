// SPDX-License-Identifier: Apache-2.0
#include "daemon/bufferevent_stream.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>

#include "daemon/result.h"
#include "daemon/socket_transport.h"

namespace popgate {
namespace {

// Small frames are news: none waits for another to fill a packet. Fails on a Unix socket, which needs none.
void set_no_delay(evutil_socket_t descriptor) {
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

BuffereventStream::BuffereventStream(bufferevent* event, std::optional<SocketAddress> address)
    : event_(event), address_(address) {
  POPGATE_ASSERT(event_ != nullptr);
}

BuffereventStream::~BuffereventStream() { bufferevent_free(event_); }

void BuffereventStream::start(StreamOwner& owner) {
  owner_ = &owner;
  bufferevent_setcb(
      event_, [](bufferevent*, void* self) { static_cast<BuffereventStream*>(self)->owner_->stream_readable(); },
      [](bufferevent*, void* self) { static_cast<BuffereventStream*>(self)->owner_->stream_drained(); }, on_event,
      this);
  bufferevent_setwatermark(event_, EV_WRITE, kDrainedBytes, 0);
  (void)bufferevent_set_max_single_read(event_, kReadBytesMax);
  (void)bufferevent_set_max_single_write(event_, kWriteBytesMax);
  bufferevent_enable(event_, EV_READ | EV_WRITE);
  connect();
}

void BuffereventStream::connect() {
  short first = BEV_EVENT_CONNECTED;
  if (address_) {
    if (bufferevent_socket_connect(event_, address_->get(), static_cast<int>(address_->bytes())) == 0) return;
    first = BEV_EVENT_ERROR;
  }
  bufferevent_trigger_event(event_, first, BEV_TRIG_DEFER_CALLBACKS);
}

// As the kernel measures it. Nothing of a Unix socket.
std::optional<microseconds> BuffereventStream::round_trip() const {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(bufferevent_getfd(event_), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  if (info.tcpi_state != TCP_ESTABLISHED) return std::nullopt;
  return microseconds(info.tcpi_rtt);
}

void BuffereventStream::on_event(bufferevent* event, short what, void* self) {
  auto& stream = *static_cast<BuffereventStream*>(self);
  if ((what & BEV_EVENT_CONNECTED) != 0) {
    set_no_delay(bufferevent_getfd(event));
    stream.on_connected();
  } else if ((what & BEV_EVENT_EOF) != 0) {
    stream.owner_->stream_ended("closed by the other side");
  } else if ((what & BEV_EVENT_ERROR) != 0) {
    stream.owner_->stream_ended(stream.error_text());
  }
}

void BuffereventStream::on_connected() { owner_->stream_connected(); }

std::string BuffereventStream::error_text() { return evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR()); }

void BuffereventStream::write(std::string_view bytes) { bufferevent_write(event_, bytes.data(), bytes.size()); }

void BuffereventStream::flush() {
  evbuffer* const output = bufferevent_get_output(event_);
  (void)evbuffer_unfreeze(output, 1);  // a bufferevent lets nobody else take from the front of its output
  (void)evbuffer_write(output, bufferevent_getfd(event_));
  (void)evbuffer_freeze(output, 1);
}

std::size_t BuffereventStream::unsent_bytes() const { return evbuffer_get_length(bufferevent_get_output(event_)); }

std::string_view BuffereventStream::peek() {
  evbuffer_iovec piece{};
  if (evbuffer_peek(bufferevent_get_input(event_), -1, nullptr, &piece, 1) < 1) return {};
  return {static_cast<const char*>(piece.iov_base), piece.iov_len};
}

void BuffereventStream::consume(std::size_t bytes) { evbuffer_drain(bufferevent_get_input(event_), bytes); }

}  // namespace popgate
