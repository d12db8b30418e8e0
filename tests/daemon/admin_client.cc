// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/admin_client.h"

#include <event2/event.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace popgate {
namespace {

constexpr std::string_view kLength = "Content-Length: ";

// Bytes of the first whole reply in `received`; 0 while it is not whole.
std::size_t reply_bytes(const std::string& received) {
  const std::size_t head = received.find("\r\n\r\n");
  if (head == std::string::npos) return 0;
  const std::size_t length = received.find(kLength);
  const std::size_t body =
      length < head ? std::strtoull(received.c_str() + length + kLength.size(), nullptr, 10) : std::size_t{0};
  return received.size() >= head + 4 + body ? head + 4 + body : 0;
}

}  // namespace

bool turn_until(EventLoop& loop, const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  // A turn waits for an event, but not past this timer: conditions also change outside the loop.
  Timer tick(loop, [] {});
  tick.start_every(std::chrono::milliseconds(2));
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    event_base_loop(loop.base(), EVLOOP_ONCE);
  }
  return true;
}

AdminClient::AdminClient(EventLoop& loop, const std::string& socket_path)
    : loop_(loop), socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("connect " + socket_path + ": " + std::strerror(errno));
  }
}

bool AdminClient::send(const std::string& bytes) {
  std::size_t sent = 0;
  const bool finished = turn_until(loop_, [&] {
    while (sent < bytes.size()) {
      const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count < 0) return errno != EAGAIN;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  });
  return finished && sent == bytes.size();
}

std::size_t AdminClient::offer(const std::string& bytes) {
  const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::size_t AdminClient::take(std::size_t bytes_max) {
  char buffer[65536];
  const ssize_t count = recv(socket_.get(), buffer, std::min(bytes_max, sizeof buffer), 0);
  if (count == 0 || (count < 0 && errno != EAGAIN)) closed_ = true;
  if (count <= 0) return 0;
  received_.append(buffer, static_cast<std::size_t>(count));
  return static_cast<std::size_t>(count);
}

std::string AdminClient::reply() {
  const bool finished = turn_until(loop_, [&] {
    take(65536);
    return closed_ || reply_bytes(received_) > 0;
  });
  const std::size_t bytes = reply_bytes(received_);
  if (!finished || bytes == 0) return received_;
  std::string first = received_.substr(0, bytes);
  received_.erase(0, bytes);
  return first;
}

std::string AdminClient::rest() {
  const bool finished = turn_until(loop_, [&] {
    take(65536);
    return closed_;
  });
  return finished ? received_ : "not closed by the server: " + received_;
}

int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::atoi(reply.c_str() + std::strlen("HTTP/1.1 ")) : -1;
}

std::string body_of(const std::string& reply) {
  const std::size_t head = reply.find("\r\n\r\n");
  return head == std::string::npos ? "" : reply.substr(head + 4);
}

}  // namespace popgate
