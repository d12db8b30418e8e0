// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_connections.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/stat.h>

#include <optional>

#include "daemon/result.h"

namespace popgate {
namespace {

std::optional<ino_t> inode_of(int descriptor) {
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  return status.st_ino;
}

}  // namespace

AdminConnections::AdminConnections(EventLoop& loop, const Limits& limits)
    : loop_(loop),
      limits_(limits),
      learn_(loop, [this] { learn_descriptors(); }),
      go_on_(loop, [this] { go_on_below_bound(); }) {}

AdminConnections::~AdminConnections() {
  for (bufferevent* buffer : fresh_) bufferevent_decref(buffer);
}

void AdminConnections::watch(evconnlistener* listener) {
  listener_ = listener;
  // Out of descriptors, the connection stays in the backlog and would call back for ever.
  evconnlistener_set_error_cb(listener, [](evconnlistener* failed, void*) { evconnlistener_disable(failed); });
  go_on_.start_every(kAdminAcceptPause);
}

bufferevent* AdminConnections::add() {
  bufferevent* const buffer = bufferevent_socket_new(loop_.base(), -1, BEV_OPT_CLOSE_ON_FREE);
  POPGATE_ASSERT(buffer != nullptr);
  bufferevent_setwatermark(buffer, EV_READ, 0, limits_.received_bytes_max);
  bufferevent_incref(buffer);  // it may be freed before the next turn
  fresh_.push_back(buffer);
  learn_.start_once(std::chrono::microseconds(0));
  if (count() >= limits_.connections_max) evconnlistener_disable(listener_);
  return buffer;
}

std::size_t AdminConnections::count() {
  std::erase_if(sockets_, [](const Socket& socket) { return inode_of(socket.descriptor) != socket.inode; });
  return sockets_.size() + fresh_.size();
}

void AdminConnections::learn_descriptors() {
  for (bufferevent* buffer : fresh_) {
    const int descriptor = bufferevent_getfd(buffer);
    if (const auto inode = inode_of(descriptor)) sockets_.push_back({descriptor, *inode});
    bufferevent_decref(buffer);
  }
  fresh_.clear();
}

void AdminConnections::go_on_below_bound() {
  if (count() < limits_.connections_max) evconnlistener_enable(listener_);
}

}  // namespace popgate
