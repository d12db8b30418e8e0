// SPDX-License-Identifier: Apache-2.0
#include "daemon/socket_access.h"

#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace popgate {
namespace {

constexpr std::size_t kGroupsMax = 65536;  // of one process: NGROUPS_MAX of Linux

// Supplementary groups; none when the kernel does not tell (before 4.13).
void add_supplementary(int socket, std::vector<gid_t>& groups) {
  const std::size_t first = groups.size();
  groups.resize(first + 64);
  for (;;) {
    socklen_t bytes = static_cast<socklen_t>((groups.size() - first) * sizeof(gid_t));
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data() + first, &bytes) == 0)
      return groups.resize(first + bytes / sizeof(gid_t));
    const bool more = errno == ERANGE && groups.size() < kGroupsMax;
    if (!more) return groups.resize(first);
    groups.resize(first + std::max<std::size_t>(bytes / sizeof(gid_t), 2 * (groups.size() - first)));
  }
}

}  // namespace

std::string SocketPeer::text() const { return "uid " + std::to_string(uid) + ", pid " + std::to_string(pid); }

std::optional<SocketPeer> socket_peer(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0 || bytes != sizeof credentials)
    return std::nullopt;
  SocketPeer peer{.pid = credentials.pid, .uid = credentials.uid, .groups = {credentials.gid}};
  add_supplementary(socket, peer.groups);
  return peer;
}

SocketOwner SocketOwner::this_process() { return {geteuid(), getegid()}; }

bool may_connect(const SocketPeer& peer, const SocketAccess& access, const SocketOwner& owner) {
  if (peer.uid == 0 || peer.uid == owner.user) return true;
  if ((access.mode & 0002) != 0) return true;
  const gid_t group = access.group.value_or(owner.group);
  return (access.mode & 0020) != 0 && std::ranges::find(peer.groups, group) != peer.groups.end();
}

Result<gid_t> group_number(const std::string& group) {
  gid_t number = 0;
  const char* const end = group.data() + group.size();
  if (const auto [read, error] = std::from_chars(group.data(), end, number); error == std::errc() && read == end)
    return number;
  ::group found{};
  ::group* result = nullptr;
  std::vector<char> text(65536);
  if (getgrnam_r(group.c_str(), &found, text.data(), text.size(), &result) == 0 && result != nullptr)
    return found.gr_gid;
  return Error{"found \"" + group + "\", allowed: a group of this host, by name or number"};
}

}  // namespace popgate
