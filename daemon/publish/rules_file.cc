// SPDX-License-Identifier: Apache-2.0
#include "daemon/publish/rules_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace popgate {
namespace {

Error failure(const std::string& path, const char* what) { return {path + ": " + what + ": " + std::strerror(errno)}; }

// A full tmpfs shows here, and not later as SIGBUS.
Status write_all(int descriptor, std::span<const std::byte> block, const std::string& path) {
  while (!block.empty()) {
    const ssize_t written = ::write(descriptor, block.data(), block.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failure(path, "cannot write the compiled rules");
    block = block.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<RulesFile> RulesFile::write(const std::string& path, std::span<const std::byte> block) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // left by a daemon that was killed while it wrote
  {
    const FileDescriptor writable(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!writable.is_open()) return failure(unfinished, "cannot create the file");
    if (const Status written = write_all(writable.get(), block, unfinished); !written) {
      ::unlink(unfinished.c_str());
      return Error{written.error()};
    }
  }
  FileDescriptor readable(::open(unfinished.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!readable.is_open() || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    const Error error = failure(path, "cannot publish the compiled rules");
    ::unlink(unfinished.c_str());
    return error;
  }
  return RulesFile(std::move(readable), block.size());
}

}  // namespace popgate
