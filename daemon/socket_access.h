// SPDX-License-Identifier: Apache-2.0
//
// Who may connect to a Unix socket of the daemon, asked of the kernel for each connection.
//
// The socket file's mode and group say it first. They are looked at once more on the connection itself, because a file
// can be opened wider later, by a hand or a script, and neither socket asks for a password.
//
// Threads: any.
// Invariants: 1. Root and the daemon's own user may always connect; nobody else whom `mode` and `group` do not name.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "daemon/result.h"

namespace popgate {

struct SocketAccess {
  mode_t mode = 0600;
  std::optional<gid_t> group{};  // absent: the group of whoever starts the daemon
};

/// The process at the other end, as it was when it connected (SO_PEERCRED, SO_PEERGROUPS).
struct SocketPeer {
  pid_t pid = 0;
  uid_t uid = 0;
  std::vector<gid_t> groups{};  // its own one first

  [[nodiscard]] std::string text() const;  // "uid 33, pid 812"
};
[[nodiscard]] std::optional<SocketPeer> socket_peer(int socket);

/// `own`: the daemon's user; `own_group`: whose socket it is when `access` names no group.
struct SocketOwner {
  uid_t user = 0;
  gid_t group = 0;
  [[nodiscard]] static SocketOwner this_process();
};
[[nodiscard]] bool may_connect(const SocketPeer& peer, const SocketAccess& access, const SocketOwner& owner);

/// The number of a group that is given by name or number; an error that says what was found and what is allowed.
[[nodiscard]] Result<gid_t> group_number(const std::string& group);

}  // namespace popgate
