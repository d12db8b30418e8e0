// SPDX-License-Identifier: Apache-2.0
//
// A listening Unix socket of the daemon, and taking its path over from a daemon that died.
//
// Threads: the event loop's.
// Invariants: 1. The socket is never more open than `mode`, not even for a moment, and never open to a wrong group:
//                nobody can connect before it has both.
//             2. A path where somebody listens, or that is no socket, is left alone.
// Limits: a path of 107 bytes; `backlog` connections wait to be accepted. Two daemons that start at the same moment on
//         one stale path are kept apart by the lock on the ledger, not here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/result.h"
#include "libclient/file_descriptor.h"

namespace popgate {

class UnixListener {
 public:
  struct Options {
    std::string purpose;  // "worker socket": what errors begin with
    int type = 0;         // SOCK_STREAM, SOCK_SEQPACKET
    mode_t mode = 0600;
    int backlog = 128;
    std::optional<gid_t> group{};  // of the socket file; the process must be root or a member
  };

  [[nodiscard]] static Result<UnixListener> listen(const std::string& path, const Options& options);
  UnixListener(UnixListener&& other) noexcept = default;
  UnixListener& operator=(UnixListener&&) = delete;
  /// Removes the path, unless another socket has taken it meanwhile.
  ~UnixListener();

  /// Non-blocking, and closed on exec.
  [[nodiscard]] int descriptor() const { return fd_.get(); }

 private:
  UnixListener(FileDescriptor fd, std::string path);

  FileDescriptor fd_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace popgate
