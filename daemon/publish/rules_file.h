// SPDX-License-Identifier: Apache-2.0
//
// Publishes the compiled rules: each revision is a file of its own in run_dir, handed to workers as a read-only
// descriptor.
//
// A new inode for each revision, renamed over the last one, so that a worker that still maps the old rules keeps them
// whole until it switches. Nothing is synced: a next daemon writes its rules anew, and none looks at what a boot before
// left.
//
// When run_dir has no room, or cannot be written, the rules are in a sealed memfd instead. Nobody needs the name:
// workers get descriptors. So a daemon whose table and ledger are there (they have their room) starts, and an operator
// can still change the rules. (The table cannot be one: a next daemon must be able to write to it.)
//
// Threads: the event loop's.
// Invariants: 1. The file is complete and of mode 0600 before it gets its name; it is never changed afterwards.
//             2. A memfd is complete and sealed against every change before it is handed out.
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
  /// Writes `block` to `path`, or to memory: `note` then says why, with the path and the reason, and what stood at
  /// `path` before still stands. An error when neither can be done.
  [[nodiscard]] static Result<RulesFile> write(const std::string& path, std::span<const std::byte> block,
                                               std::string& note);

  [[nodiscard]] int read_only_descriptor() const { return descriptor_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  RulesFile(FileDescriptor descriptor, std::size_t bytes) : descriptor_(std::move(descriptor)), bytes_(bytes) {}
  [[nodiscard]] static Result<RulesFile> write_named(const std::string& path, std::span<const std::byte> block);
  [[nodiscard]] static Result<RulesFile> write_sealed(std::span<const std::byte> block);

  FileDescriptor descriptor_;
  std::size_t bytes_;
};

}  // namespace popgate
