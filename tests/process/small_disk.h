// SPDX-License-Identifier: Apache-2.0
//
// A folder that is a disk of its own, of a few kilobytes, for the processes that a test starts with it: a tmpfs in a
// mount namespace that nobody else sees and that is gone with the last process in it.
//
// Threads: any; what has to happen inside runs on a thread that ends there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "libclient/file_descriptor.h"

namespace popgate::process {

class SmallDisk {
 public:
  /// Why there can be none here. Empty when there can.
  [[nodiscard]] static std::optional<std::string> unavailable();

  /// The folder must exist; outside of the namespace it stays as it is. Throws std::system_error.
  SmallDisk(std::filesystem::path folder, std::size_t bytes);

  /// For ChildProcess::Options.
  [[nodiscard]] int mount_namespace() const { return namespace_.get(); }
  /// Writes one file until there is no room left; freed by free().
  void fill();
  void free();
  /// Only while no process has a file there open for writing.
  void set_read_only(bool read_only);

 private:
  void run_inside(const std::function<void()>& function) const;

  std::filesystem::path folder_;
  FileDescriptor namespace_;
};

}  // namespace popgate::process
