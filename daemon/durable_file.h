// SPDX-License-Identifier: Apache-2.0
//
// Replaces a small file so that it holds the old bytes or the new ones, whole, whenever the process is killed or the
// power goes.
//
//     write the bytes to `path`.new -> sync them -> rename to `path` -> sync the folder
//
// The bytes are on the disk before the name leads to them: renamed first, a name may after a loss of power lead to
// bytes that never got there, and the old file is gone as well. What each step leaves behind when it is the last one:
//
//     written    the old file; `path`.new is whole if only the process died, and anything if the power went
//     synced     the old file, and `path`.new whole
//     renamed    the new file if only the process died; either, if the power went
//     folder     the new file
//
// A reader that also looks at `path`.new (unfinished_name()) therefore finds what a killed process had written.
//
// Threads: any. Every step may wait for the disk as long as that likes: not on the event loop.
// Invariants: 1. `path` is never a part of anything.
// Limits: the caller's; the whole file is in memory.
#pragma once

#include <string>
#include <string_view>

#include "daemon/result.h"

namespace popgate {

/// The steps one by one, so that a test can take the power away between any two.
class DiskSteps {
 public:
  virtual ~DiskSteps() = default;
  /// Creates the file (mode 0600) or writes over it.
  [[nodiscard]] virtual Status write(const std::string& path, std::string_view bytes) = 0;
  [[nodiscard]] virtual Status sync(const std::string& path) = 0;
  [[nodiscard]] virtual Status rename(const std::string& from, const std::string& to) = 0;
  [[nodiscard]] virtual Status sync_folder(const std::string& folder) = 0;
};

class SystemDisk final : public DiskSteps {
 public:
  [[nodiscard]] Status write(const std::string& path, std::string_view bytes) override;
  [[nodiscard]] Status sync(const std::string& path) override;
  [[nodiscard]] Status rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] Status sync_folder(const std::string& folder) override;
};

[[nodiscard]] std::string unfinished_name(const std::string& path);
[[nodiscard]] std::string folder_of(const std::string& path);

/// An error names the file and the step. `path` then holds what it held before, or, when only the folder could not be
/// synced, the new bytes, which a loss of power may still take.
[[nodiscard]] Status replace_file(DiskSteps& disk, const std::string& path, std::string_view bytes);
/// The steps after the first: for what a killed process had written.
[[nodiscard]] Status finish_replacing(DiskSteps& disk, const std::string& path);

}  // namespace popgate
