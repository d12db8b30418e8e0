// SPDX-License-Identifier: Apache-2.0
//
// A worker as a program of its own, for tests in which it must have another clock or namespace than they: does what it
// is told over the inherited socket argv[2], a message each, and ticks between.
//
//     send ADDRESS COUNT    ->  how many of so many requests were blocked
//     peek ADDRESS          ->  1 when a request would be blocked
//     recorded              ->  hits recorded and hits dropped, added up
//     attached              ->  1 while a daemon is attached
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "tests/process/pop.h"

namespace popgate::process {
namespace {

constexpr int kTickMs = 10;

std::string answer(Worker& worker, const std::string& command) {
  std::istringstream words(command);
  std::string verb;
  std::string address;
  std::uint64_t count = 0;
  words >> verb >> address >> count;
  if (verb == "peek") return worker.is_blocked(address) ? "1" : "0";
  if (verb == "attached") return worker.statistics().attached == 1 ? "1" : "0";
  if (verb == "recorded") {
    const popgate_statistics statistics = worker.statistics();
    return std::to_string(statistics.hits_recorded + statistics.hits_dropped);
  }
  std::uint64_t blocked = 0;
  for (std::uint64_t i = 0; verb == "send" && i < count; ++i) blocked += worker.request(address) ? 1U : 0U;
  return std::to_string(blocked);
}

int run(const std::string& worker_socket, int commands) {
  Worker worker{std::filesystem::path(worker_socket)};
  pollfd readable{commands, POLLIN, 0};
  for (;;) {
    worker.tick();
    if (poll(&readable, 1, kTickMs) <= 0) continue;
    char text[256];
    const ssize_t bytes = recv(commands, text, sizeof text, 0);
    if (bytes <= 0) return 0;  // the test has ended
    const std::string reply = answer(worker, std::string(text, static_cast<std::size_t>(bytes)));
    if (send(commands, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return 1;
  }
}

}  // namespace
}  // namespace popgate::process

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: popgate-test-worker WORKER_SOCKET COMMANDS_DESCRIPTOR\n";
    return 2;
  }
  return popgate::process::run(argv[1], std::atoi(argv[2]));
}
