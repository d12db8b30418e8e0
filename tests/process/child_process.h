// SPDX-License-Identifier: Apache-2.0
//
// One child process of a test: started, signalled by its pid, and never left running.
//
// It dies with the test, also when the test is killed (PR_SET_PDEATHSIG; the thread that started it must outlive it).
// What it prints goes to a memfd, so that nothing is left on disk and a test can show it when something fails.
//
// Threads: one thread at a time.
// Invariants: 1. A signal is sent only while the child has not been reaped, so never to a stranger with its pid.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace popgate::process {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> environment{};  // "NAME=value", added to the test's own
    std::vector<int> inherited{};            // descriptors that stay open in the child under the same number
    /// For programs that give up root themselves: that would clear the signal by which they die with the test, so root
    /// is given up before they start.
    bool as_nobody = false;
    /// In which it starts (NetworkNamespace::descriptor); negative: the test's own. The same with mounts.
    int network_namespace = -1;
    int mount_namespace = -1;
  };

  /// argv[0] is looked up in PATH. Throws when it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& argv) : ChildProcess(argv, Options{}) {}
  ChildProcess(const std::vector<std::string>& argv, const Options& options);
  ~ChildProcess();  // SIGKILL, and reaps
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running();
  void signal(int number);
  /// waitpid's status, once it has ended; empty when the deadline passes first.
  [[nodiscard]] std::optional<int> wait_exit(std::chrono::milliseconds deadline);
  /// SIGTERM, and the status; SIGKILL when it has not ended by the deadline.
  std::optional<int> stop(std::chrono::milliseconds deadline = std::chrono::seconds(10));
  void kill_now();
  /// SIGSTOP, and waits until it has stopped: a signal is only on its way when kill() returns.
  void freeze();
  void thaw();
  /// Everything it printed so far, stdout and stderr.
  [[nodiscard]] std::string output() const;

 private:
  void start(const std::vector<std::string>& argv, const Options& options);
  void release();

  pid_t pid_ = -1;
  std::optional<int> status_;
  int output_ = -1;
};

/// Asks again every few milliseconds until `condition` holds; false when the deadline passes first.
[[nodiscard]] bool eventually(const std::function<bool()>& condition,
                              std::chrono::milliseconds deadline = std::chrono::seconds(10));

/// True once something accepts connections on 127.0.0.1:port (of a network namespace); false when the child ends or the
/// deadline passes first.
[[nodiscard]] bool accepts_connections(ChildProcess& child, std::uint16_t port, std::chrono::milliseconds deadline,
                                       int network_namespace = -1);

}  // namespace popgate::process
