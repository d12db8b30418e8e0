// SPDX-License-Identifier: Apache-2.0
//
// The Unix socket that workers connect to: listening on it, and taking its path over from a daemon that died.
//
// Threads: the event loop's.
// Invariants: 1. The socket is never more open than `mode`, not even for a moment.
//             2. A path where somebody listens, or that is no socket, is left alone.
// Limits: a path of 107 bytes; kWorkerBacklog connections wait to be accepted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "daemon/result.h"
#include "libclient/file_descriptor.h"

namespace popgate {

inline constexpr int kWorkerBacklog = 128;

class WorkerSocket {
 public:
  [[nodiscard]] static Result<WorkerSocket> listen(const std::string& path, mode_t mode);
  WorkerSocket(WorkerSocket&& other) noexcept = default;
  WorkerSocket& operator=(WorkerSocket&&) = delete;
  /// Removes the path, unless another socket has taken it meanwhile.
  ~WorkerSocket();

  [[nodiscard]] int descriptor() const { return fd_.get(); }

 private:
  WorkerSocket(FileDescriptor fd, std::string path);

  FileDescriptor fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace popgate
