// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/file_lock.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace popgate {

Result<FileLock> FileLock::take(const std::string& path) {
  const std::string lock_path = path + ".lock";
  FileDescriptor fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.is_open()) return Error{lock_path + ": cannot open: " + std::strerror(errno)};
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return FileLock(std::move(fd));
  if (errno == EAGAIN || errno == EACCES) return Error{path + ": " + std::string(kInUse)};
  return Error{lock_path + ": cannot lock: " + std::strerror(errno)};
}

}  // namespace popgate
