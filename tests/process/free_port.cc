// SPDX-License-Identifier: Apache-2.0
#include "tests/process/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>

namespace popgate::process {
namespace {

constexpr int kLowest = 10'000;

int highest_port() {
  int low = 32'768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low;
  return low > kLowest + 1000 ? low - 1 : 32'767;
}

int reserve(int port) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const int chars = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "popgate-test-port-%d", port);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(chars));
  if (fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&name), bytes) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

bool can_bind(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool free = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (fd >= 0) close(fd);
  return free;
}

}  // namespace

FreePort::FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> any(kLowest, highest_port());
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const int port = any(random);
    const int reservation = reserve(port);
    if (reservation < 0) continue;
    if (can_bind(port)) {
      port_ = static_cast<std::uint16_t>(port);
      reservation_ = reservation;
      return;
    }
    close(reservation);
  }
  throw std::runtime_error("no free port on 127.0.0.1");
}

FreePort::~FreePort() {
  if (reservation_ >= 0) close(reservation_);
}

}  // namespace popgate::process
