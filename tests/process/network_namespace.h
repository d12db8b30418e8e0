// SPDX-License-Identifier: Apache-2.0
//
// A network namespace of Linux without a name: it lives as long as this object or a process in it, and leaves nothing
// behind when a test is killed.
//
// Threads: any; the calling thread's own namespace never changes, because what has to happen inside runs on a thread
// that ends there.
#pragma once

#include <functional>

#include "libclient/file_descriptor.h"

namespace popgate::process {

class NetworkNamespace {
 public:
  /// With its loopback interface up. Throws std::system_error when that is not allowed here.
  NetworkNamespace();

  /// For ChildProcess::Options and setns().
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// Runs inside; what it throws is thrown here. Sockets opened there stay there.
  void run_inside(const std::function<void()>& function) const { run_in(descriptor_.get(), function); }
  /// The same in any namespace; in the caller's own when `descriptor` is negative.
  static void run_in(int descriptor, const std::function<void()>& function);

 private:
  FileDescriptor descriptor_;
};

}  // namespace popgate::process
