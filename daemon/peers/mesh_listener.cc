// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/mesh_listener.h"

#include <event2/listener.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace popgate {

MeshListener::MeshListener(event_base* base, OnAccept on_accept)
    : on_accept_(std::move(on_accept)), resume_(base, [this] { evconnlistener_enable(listener_); }) {}

MeshListener::~MeshListener() {
  if (listener_ != nullptr) evconnlistener_free(listener_);
}

Result<std::unique_ptr<MeshListener>> MeshListener::open(event_base* base, const SocketAddress& address,
                                                         OnAccept on_accept) {
  std::unique_ptr<MeshListener> self(new MeshListener(base, std::move(on_accept)));
  self->listener_ = evconnlistener_new_bind(
      base,
      [](evconnlistener*, evutil_socket_t descriptor, sockaddr* remote, int bytes, void* context) {
        static_cast<MeshListener*>(context)->on_accept_(descriptor,
                                                        SocketAddress::of(remote, static_cast<socklen_t>(bytes)));
      },
      self.get(), LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, kListenBacklog, address.get(),
      static_cast<int>(address.bytes()));
  if (self->listener_ == nullptr) return Error{"cannot listen on " + address.text() + ": " + std::strerror(errno)};
  evconnlistener_set_error_cb(self->listener_,
                              [](evconnlistener*, void* context) { static_cast<MeshListener*>(context)->pause(); });
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (getsockname(evconnlistener_get_fd(self->listener_), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
    return Error{std::string("cannot ask for the listening address: ") + std::strerror(errno)};
  }
  self->address_ = SocketAddress::of(reinterpret_cast<const sockaddr*>(&bound), bytes);
  return self;
}

void MeshListener::pause() {
  ++failures_;
  evconnlistener_disable(listener_);
  resume_.start_once(kMeshAcceptPause);
}

}  // namespace popgate
