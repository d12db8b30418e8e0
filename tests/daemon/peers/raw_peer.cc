// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/peers/raw_peer.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>

#include "daemon/socket_address.h"

namespace popgate {

RawPeer::RawPeer(event_base* base, std::uint16_t port)
    : RawPeer(bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE), port) {}

RawPeer::RawPeer(event_base* base, std::uint16_t port, openssl::Handle<SSL> ssl)
    : RawPeer(
          bufferevent_openssl_socket_new(base, -1, ssl.release(), BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE),
          port) {}

RawPeer::RawPeer(bufferevent* bev, std::uint16_t port) : bev_(bev) {
  bufferevent_setcb(
      bev_, [](bufferevent*, void* self) { static_cast<RawPeer*>(self)->on_readable(); }, nullptr,
      [](bufferevent*, short what, void* self) {
        if ((what & BEV_EVENT_CONNECTED) != 0) static_cast<RawPeer*>(self)->connected_ = true;
        if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) static_cast<RawPeer*>(self)->closed_ = true;
      },
      this);
  bufferevent_enable(bev_, EV_READ | EV_WRITE);
  const auto address = *SocketAddress::resolve("127.0.0.1", port);
  (void)bufferevent_socket_connect(bev_, address.get(), static_cast<int>(address.bytes()));
}

RawPeer::~RawPeer() { bufferevent_free(bev_); }

void RawPeer::send_bytes(std::string_view bytes) { (void)bufferevent_write(bev_, bytes.data(), bytes.size()); }

void RawPeer::on_readable() {
  char chunk[4096];
  int bytes = 0;
  while ((bytes = evbuffer_remove(bufferevent_get_input(bev_), chunk, sizeof chunk)) > 0) {
    reader_.append({chunk, static_cast<std::size_t>(bytes)});
    while (const auto payload = reader_.next()) heard_.push_back(*wire::decode(*payload));
  }
}

}  // namespace popgate
