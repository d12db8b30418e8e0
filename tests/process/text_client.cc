// SPDX-License-Identifier: Apache-2.0
#include "tests/process/text_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tests/process/network_namespace.h"

namespace popgate::process {
namespace {

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

}  // namespace

TextClient::TextClient(std::uint16_t port, int network_namespace) {
  NetworkNamespace::run_in(network_namespace, [&] { connect_to(port); });
}

void TextClient::connect_to(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{kPatience.count(), 0};
  if (fd_ < 0) fail("socket");
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fail("connect");
  }
}

TextClient::~TextClient() {
  if (fd_ >= 0) close(fd_);
}

void TextClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string TextClient::read_through(std::string_view ending) {
  std::size_t found = 0;
  while ((found = received_.find(ending)) == std::string::npos) {
    char buffer[65536];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got <= 0) fail(got == 0 ? "the other side closed the connection" : "recv");
    received_.append(buffer, static_cast<std::size_t>(got));
  }
  std::string out = received_.substr(0, found + ending.size());
  received_.erase(0, out.size());
  return out;
}

}  // namespace popgate::process
