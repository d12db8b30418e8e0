// SPDX-License-Identifier: Apache-2.0
//
// Publishes the compiled rules: each revision is a file of its own in run_dir, handed to workers as a read-only
// descriptor.
//
// A new inode for each revision, renamed over the last one, so that a worker that still maps the old rules keeps them
// whole until it switches.
//
// Threads: the event loop's.
// Invariants: 1. The file is complete and of mode 0600 before it gets its name; it is never changed afterwards.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "daemon/result.h"
#include "libclient/file_descriptor.h"

namespace popgate {

/// A read-only descriptor of one revision; closed with the object.
class RulesFile {
 public:
  /// Writes `block` to `path`. An error names the path and the reason; what stood at `path` before then still stands.
  [[nodiscard]] static Result<RulesFile> write(const std::string& path, std::span<const std::byte> block);

  [[nodiscard]] int read_only_descriptor() const { return descriptor_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  RulesFile(FileDescriptor descriptor, std::size_t bytes) : descriptor_(std::move(descriptor)), bytes_(bytes) {}

  FileDescriptor descriptor_;
  std::size_t bytes_;
};

}  // namespace popgate
