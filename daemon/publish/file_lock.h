// SPDX-License-Identifier: Apache-2.0
//
// Keeps a second daemon away from a file: an open-file-description lock on `path`.lock, held until this object goes.
//
// The lock has a file of its own, because the file it guards may be renamed aside and begun afresh, and a lock that is
// tied to a renamed file guards nothing. The kernel drops it when the process ends, however it ends. An OFD lock and
// not a POSIX one: that would be lost as soon as any descriptor of the file is closed.
//
// Threads: the event loop's.
#pragma once

#include <string>
#include <string_view>

#include "daemon/result.h"
#include "libclient/file_descriptor.h"

namespace popgate {

/// How the error of a lock that another process holds ends.
inline constexpr std::string_view kInUse = "in use by another daemon";

class FileLock {
 public:
  /// Does not wait: an error at once when another process holds it.
  [[nodiscard]] static Result<FileLock> take(const std::string& path);

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace popgate
