// SPDX-License-Identifier: Apache-2.0
//
// Writes all bytes or says that it could not: write() alone may take a part of them, or none because of a signal.
//
// Threads: any. Waits as long as the file lets it: not for sockets.
// Invariants: 1. True means that the kernel has every byte, not that the disk has.
// Limits: none of its own; a full disk or RLIMIT_FSIZE ends it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace popgate {

/// False with errno set; some of the bytes may be in the file then.
[[nodiscard]] inline bool write_whole(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace popgate
