// SPDX-License-Identifier: Apache-2.0
//
// Keeps the number of clients of the admin socket bounded: stops accepting at the bound, or when the process has run
// out of descriptors, and goes on a little later.
//
// libevent 2.1 has no such bound and does not say when a connection that never sent a request ends. So each accepted
// connection is remembered by its descriptor and the inode of its socket, and is gone when the descriptor no longer
// has that inode. Clients beyond the bound wait in the kernel's backlog.
//
// Threads: the event loop's.
// Invariants: 1. Never more than `connections_max` are open, counting those whose end was not looked for yet.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "daemon/event_loop.h"

struct bufferevent;
struct evconnlistener;

namespace popgate {

inline constexpr std::chrono::milliseconds kAdminAcceptPause{200};  // how soon accepting goes on

class AdminConnections {
 public:
  struct Limits {
    std::size_t connections_max;
    std::size_t received_bytes_max;  // a connection, not yet taken by HTTP; more stays with the kernel and the client
  };

  AdminConnections(EventLoop& loop, const Limits& limits);
  ~AdminConnections();
  AdminConnections(const AdminConnections&) = delete;
  AdminConnections& operator=(const AdminConnections&) = delete;

  /// The listener to stop and start; it must outlive this object's last turn of the loop.
  void watch(evconnlistener* listener);
  /// A buffer for the connection that is being accepted; libevent's HTTP gives it the descriptor after this call.
  [[nodiscard]] bufferevent* add();
  /// Open now.
  [[nodiscard]] std::size_t count();

 private:
  struct Socket {
    int descriptor;
    ino_t inode;
  };

  void learn_descriptors();
  void go_on_below_bound();

  EventLoop& loop_;
  Limits limits_;
  evconnlistener* listener_ = nullptr;
  std::vector<bufferevent*> fresh_;  // accepted in this turn of the loop; a reference each
  std::vector<Socket> sockets_;
  Timer learn_;
  Timer go_on_;  // always runs: libevent does not tell us that it failed to accept, only the listener
};

}  // namespace popgate
