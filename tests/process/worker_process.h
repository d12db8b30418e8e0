// SPDX-License-Identifier: Apache-2.0
//
// A worker that is a process of its own (worker_program.cc), with the surroundings that a test gives it.
//
// Threads: one thread at a time.
// Limits: an answer that does not come within ten seconds is an exception.
#pragma once

#include <cstdint>
#include <string>

#include "libclient/file_descriptor.h"
#include "tests/process/child_process.h"
#include "tests/process/pop.h"

namespace popgate::process {

class WorkerProcess {
 public:
  WorkerProcess(const Node& node, ChildProcess::Options surroundings);

  /// So many requests; how many of them were blocked.
  std::uint64_t send(const std::string& address, std::uint64_t count);
  [[nodiscard]] bool is_blocked(const std::string& address) { return ask("peek " + address) == "1"; }
  [[nodiscard]] bool attach();
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  /// Hits that entered the ring or found it full.
  [[nodiscard]] std::uint64_t recorded() { return std::stoull(ask("recorded")); }

 private:
  [[nodiscard]] std::string ask(const std::string& command);

  FileDescriptor commands_;
  std::optional<ChildProcess> process_;
};

}  // namespace popgate::process
