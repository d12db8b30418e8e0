// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/worker_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace popgate {
namespace {

Error system_error(const std::string& path, const char* call, int error) {
  return Error{"worker socket " + path + ": " + call + ": " + std::strerror(error)};
}

FileDescriptor new_socket() {
  return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Nobody accepts there: the daemon that made it is gone.
bool is_stale(const sockaddr_un& address) {
  const FileDescriptor probe = new_socket();
  const auto* const to = reinterpret_cast<const sockaddr*>(&address);
  return probe.is_open() && connect(probe.get(), to, sizeof address) != 0 && errno == ECONNREFUSED;
}

Status clear_path(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return errno == ENOENT ? Status() : system_error(path, "lstat", errno);
  if (!S_ISSOCK(status.st_mode)) return Error{"worker socket " + path + ": something that is not a socket is there"};
  if (!is_stale(address)) return Error{"worker socket " + path + ": another daemon listens there"};
  if (unlink(path.c_str()) != 0) return system_error(path, "unlink", errno);
  return {};
}

}  // namespace

WorkerSocket::WorkerSocket(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {
  struct stat status {};
  if (lstat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

WorkerSocket::~WorkerSocket() {
  struct stat status {};
  if (!fd_.is_open() || lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) unlink(path_.c_str());
}

Result<WorkerSocket> WorkerSocket::listen(const std::string& path, mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{"worker socket " + path + ": a path of " + std::to_string(path.size()) + " bytes, allowed: 1 to " +
                 std::to_string(sizeof address.sun_path - 1)};
  }
  path.copy(address.sun_path, path.size());
  if (Status cleared = clear_path(path, address); !cleared) return Error{cleared.error()};
  FileDescriptor fd = new_socket();
  if (!fd.is_open()) return system_error(path, "socket", errno);
  // The kernel gives the path the socket's own mode, less the umask: set it first, and undo the umask after.
  if (fchmod(fd.get(), mode) != 0) return system_error(path, "fchmod", errno);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error(path, "bind", errno);
  }
  WorkerSocket socket(std::move(fd), path);
  if (chmod(path.c_str(), mode) != 0) return system_error(path, "chmod", errno);
  if (::listen(socket.descriptor(), kWorkerBacklog) != 0) return system_error(path, "listen", errno);
  return socket;
}

}  // namespace popgate
