// SPDX-License-Identifier: Apache-2.0
#include "daemon/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace popgate {
namespace {

// One attempt to listen: what every step of it and every error needs.
struct Attempt {
  const std::string& path;
  const UnixListener::Options& options;
  sockaddr_un address{};

  [[nodiscard]] const sockaddr* to() const { return reinterpret_cast<const sockaddr*>(&address); }
  [[nodiscard]] FileDescriptor new_socket() const {
    return FileDescriptor(::socket(AF_UNIX, options.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  [[nodiscard]] Error error(const std::string& text) const { return Error{options.purpose + " " + path + ": " + text}; }
  [[nodiscard]] Error system_error(const char* call, int number) const {
    return error(std::string(call) + ": " + std::strerror(number));
  }
};

// Nobody accepts there: the daemon that made it is gone.
bool is_stale(const Attempt& attempt) {
  const FileDescriptor probe = attempt.new_socket();
  return probe.is_open() && connect(probe.get(), attempt.to(), sizeof attempt.address) != 0 && errno == ECONNREFUSED;
}

Status clear_path(const Attempt& attempt) {
  struct stat status {};
  if (lstat(attempt.path.c_str(), &status) != 0) {
    return errno == ENOENT ? Status() : attempt.system_error("lstat", errno);
  }
  if (!S_ISSOCK(status.st_mode)) return attempt.error("something that is not a socket is there");
  if (!is_stale(attempt)) return attempt.error("another daemon listens there");
  if (unlink(attempt.path.c_str()) != 0) return attempt.system_error("unlink", errno);
  return {};
}

}  // namespace

UnixListener::UnixListener(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {
  struct stat status {};
  if (lstat(path_.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

UnixListener::~UnixListener() {
  struct stat status {};
  if (!fd_.is_open() || lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) unlink(path_.c_str());
}

Result<UnixListener> UnixListener::listen(const std::string& path, const Options& options) {
  Attempt attempt{path, options};
  attempt.address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof attempt.address.sun_path) {
    return attempt.error("a path of " + std::to_string(path.size()) + " bytes, allowed: 1 to " +
                         std::to_string(sizeof attempt.address.sun_path - 1));
  }
  path.copy(attempt.address.sun_path, path.size());
  if (Status cleared = clear_path(attempt); !cleared) return Error{cleared.error()};
  FileDescriptor fd = attempt.new_socket();
  if (!fd.is_open()) return attempt.system_error("socket", errno);
  // The kernel gives the path the socket's own mode, less the umask: set it first, and undo the umask after.
  const mode_t first_mode = options.group ? 0600 : options.mode;
  if (fchmod(fd.get(), first_mode) != 0) return attempt.system_error("fchmod", errno);
  if (bind(fd.get(), attempt.to(), sizeof attempt.address) != 0) return attempt.system_error("bind", errno);
  UnixListener listener(std::move(fd), path);
  if (options.group && lchown(path.c_str(), static_cast<uid_t>(-1), *options.group) != 0)
    return attempt.system_error(("chown to group " + std::to_string(*options.group)).c_str(), errno);
  if (chmod(path.c_str(), options.mode) != 0) return attempt.system_error("chmod", errno);
  if (::listen(listener.descriptor(), options.backlog) != 0) return attempt.system_error("listen", errno);
  return listener;
}

}  // namespace popgate
