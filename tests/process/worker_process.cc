// SPDX-License-Identifier: Apache-2.0
#include "tests/process/worker_process.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <stdexcept>

namespace popgate::process {

WorkerProcess::WorkerProcess(const Node& node, ChildProcess::Options surroundings) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair failed");
  commands_.reset(ends[0]);
  const FileDescriptor childs(ends[1]);
  const timeval patience{10, 0};
  setsockopt(commands_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  surroundings.inherited.push_back(childs.get());
  process_.emplace(
      std::vector<std::string>{POPGATE_TEST_WORKER, node.worker_socket().string(), std::to_string(childs.get())},
      surroundings);
}

std::uint64_t WorkerProcess::send(const std::string& address, std::uint64_t count) {
  return std::stoull(ask("send " + address + " " + std::to_string(count)));
}

bool WorkerProcess::attach() {
  return eventually([this] { return ask("attached") == "1"; });
}

std::string WorkerProcess::ask(const std::string& command) {
  if (::send(commands_.get(), command.data(), command.size(), MSG_NOSIGNAL) >= 0) {
    char reply[256];
    const ssize_t bytes = recv(commands_.get(), reply, sizeof reply, 0);
    if (bytes > 0) return std::string(reply, static_cast<std::size_t>(bytes));
  }
  throw std::runtime_error("the worker does not answer: " + process_->output());
}

}  // namespace popgate::process
