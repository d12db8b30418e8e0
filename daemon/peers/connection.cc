// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/connection.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <utility>

namespace popgate {
namespace {

// Small frames are news: none waits for another to fill a packet.
void set_no_delay(evutil_socket_t descriptor) {
  const int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string reason_of(short what) {
  if ((what & BEV_EVENT_EOF) != 0) return "the peer closed the connection";
  if ((what & BEV_EVENT_TIMEOUT) != 0) return "timed out";
  return evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR());
}

}  // namespace

Connection::Connection(std::size_t output_bytes_max, Events events)
    : output_bytes_max_(output_bytes_max), events_(std::move(events)) {}

Connection::~Connection() { shut(); }

std::shared_ptr<Connection> Connection::dial(event_base* base, const SocketAddress& address,
                                             std::size_t output_bytes_max, Events events) {
  bufferevent* bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
  if (bev == nullptr) return nullptr;
  std::shared_ptr<Connection> connection(new Connection(output_bytes_max, std::move(events)));
  connection->take(bev);
  if (bufferevent_socket_connect(bev, address.get(), static_cast<int>(address.bytes())) != 0) return nullptr;
  return connection;
}

std::shared_ptr<Connection> Connection::accepted(event_base* base, int descriptor, std::size_t output_bytes_max,
                                                 Events events) {
  bufferevent* bev = bufferevent_socket_new(base, descriptor, BEV_OPT_CLOSE_ON_FREE);
  if (bev == nullptr) {
    evutil_closesocket(descriptor);
    return nullptr;
  }
  std::shared_ptr<Connection> connection(new Connection(output_bytes_max, std::move(events)));
  connection->take(bev);
  set_no_delay(descriptor);
  return connection;
}

// libevent calls none of these from inside a call of ours: a connection that is refused at once is reported later.
void Connection::take(bufferevent* bev) {
  bev_ = bev;
  bufferevent_setcb(
      bev, [](bufferevent*, void* self) { static_cast<Connection*>(self)->on_readable(); },
      [](bufferevent*, void* self) {
        auto* connection = static_cast<Connection*>(self);
        const auto alive = connection->shared_from_this();
        if (connection->is_open() && connection->events_.on_drained) connection->events_.on_drained();
      },
      [](bufferevent*, short what, void* self) { static_cast<Connection*>(self)->on_event(what); }, this);
  bufferevent_setwatermark(bev, EV_WRITE, kDrainedBytes, 0);
  bufferevent_enable(bev, EV_READ | EV_WRITE);
}

bool Connection::send(const wire::Message& message) {
  if (!is_open()) return true;  // its owner has been told, or has closed it
  if (output_bytes() > output_bytes_max_) return false;
  const std::string frame = frame_of(wire::encode(message));
  if (bufferevent_write(bev_, frame.data(), frame.size()) != 0) return false;
  ++counts_.frames_out;
  counts_.bytes_out += frame.size();
  return true;
}

void Connection::send_last(const wire::Message& message) {
  if (!is_open()) return;
  if (send(message)) {
    evbuffer* output = bufferevent_get_output(bev_);
    (void)evbuffer_unfreeze(output, 1);  // a bufferevent lets nobody else take from the front of its output
    (void)evbuffer_write(output, bufferevent_getfd(bev_));
  }
  shut();
}

void Connection::shut() {
  if (bufferevent* bev = std::exchange(bev_, nullptr)) bufferevent_free(bev);
}

std::size_t Connection::output_bytes() const {
  return is_open() ? evbuffer_get_length(bufferevent_get_output(bev_)) : 0;
}

void Connection::on_event(short what) {
  const auto alive = shared_from_this();
  if ((what & BEV_EVENT_CONNECTED) != 0) {
    set_no_delay(bufferevent_getfd(bev_));
    if (events_.on_connected) events_.on_connected();
    return;
  }
  if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) != 0) lose({reason_of(what)});
}

void Connection::on_readable() {
  const auto alive = shared_from_this();
  char chunk[16 * 1024];
  while (is_open()) {
    const int bytes = evbuffer_remove(bufferevent_get_input(bev_), chunk, sizeof chunk);
    if (bytes <= 0) break;
    counts_.bytes_in += static_cast<std::uint64_t>(bytes);
    reader_.append({chunk, static_cast<std::size_t>(bytes)});
    read_frames();
  }
  if (is_open() && events_.on_batch_read) events_.on_batch_read();
}

void Connection::read_frames() {
  while (const auto payload = reader_.next()) {
    ++counts_.frames_in;
    const auto message = wire::decode(*payload);
    if (!message) return lose({message.error(), true});
    events_.on_message(*message);
    if (!is_open()) return;
  }
  if (reader_.broken()) {
    lose({"frame length: found " + std::to_string(reader_.refused_bytes()) + ", allowed: 1 to " +
              std::to_string(kFrameBytesMax),
          true});
  }
}

void Connection::lose(const Loss& loss) {
  if (!is_open()) return;
  shut();
  if (events_.on_lost) events_.on_lost(loss);
}

}  // namespace popgate
