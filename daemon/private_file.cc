// SPDX-License-Identifier: Apache-2.0
#include "daemon/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "daemon/file_error.h"
#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

Status check_private(const std::string& path, const struct stat& about, const std::string& what) {
  if ((about.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(about.st_mode & 07777));
    return Error{path + ": found mode " + mode + ", allowed: 0600 or 0400 (others must not read " + what + ")"};
  }
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return Error{path + ": found owner " + std::to_string(about.st_uid) + ", allowed: " + std::to_string(geteuid()) +
                 ", the user of this process, or root"};
  }
  return {};
}

Result<std::string> read_whole(const std::string& path, int descriptor, std::size_t bytes_max) {
  std::string text(bytes_max + 1, '\0');  // one more than allowed, so that a longer file is noticed
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t count = read(descriptor, text.data() + bytes, text.size() - bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, "cannot read it");
    if (count == 0) break;
    bytes += static_cast<std::size_t>(count);
  }
  if (bytes > bytes_max) {
    return Error{path + ": found more than " + std::to_string(bytes_max) + " bytes, allowed: at most as many"};
  }
  text.resize(bytes);
  return text;
}

/// `what`: the secret that must be private; null: anybody may read the file.
Result<std::string> read_file(const std::string& path, std::size_t bytes_max, const std::string* what) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return file_error(path, "cannot open it");
  struct stat about {};
  if (fstat(file.get(), &about) != 0) return file_error(path, "cannot look at it");
  if (!S_ISREG(about.st_mode)) return Error{path + ": found something that is not a file, allowed: a file"};
  if (what != nullptr) {
    if (Status is_private = check_private(path, about, *what); !is_private) return Error{is_private.error()};
  }
  return read_whole(path, file.get(), bytes_max);
}

}  // namespace

Result<std::string> read_private_file(const std::string& path, std::size_t bytes_max, const std::string& what) {
  return read_file(path, bytes_max, &what);
}

Result<std::string> read_public_file(const std::string& path, std::size_t bytes_max) {
  return read_file(path, bytes_max, nullptr);
}

}  // namespace popgate
