// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_exchange.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "daemon/ctl_reply.h"
#include "daemon/duration.h"
#include "libclient/file_descriptor.h"

namespace popgate {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

// What whoever is on call should look at first.
std::string advice(int error) {
  switch (error) {
    case ENOENT:
      return "there is no such socket: is popgated running, and is this its admin_socket?";
    case ECONNREFUSED:
      return "nobody listens there: popgated has ended and must be started again";
    case EACCES:
    case EPERM:
      return "only root and the user that popgated runs as may use it: try sudo";
    case EPIPE:
    case ECONNRESET:
      return "it closed the connection before it answered: look at its log";
    default:
      return std::strerror(error);
  }
}

class Exchange {
 public:
  Exchange(const std::string& socket_path, std::chrono::milliseconds timeout) : path_(socket_path), timeout_(timeout) {}

  Status connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.empty() || path_.size() >= sizeof address.sun_path) return failed("a socket's path has 1 to 107 bytes");
    path_.copy(address.sun_path, path_.size());
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval wait{.tv_sec = timeout_.count() / 1000, .tv_usec = timeout_.count() % 1000 * 1000};
    if (!socket_.is_open() || setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
        setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) != 0) {
      return failed(std::strerror(errno));
    }
    const auto* const to = reinterpret_cast<const sockaddr*>(&address);
    return ::connect(socket_.get(), to, sizeof address) == 0 ? Status() : system_error();
  }

  Status send(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return system_error();
      sent += static_cast<std::size_t>(count);
    }
    return {};
  }

  Result<CtlReply> receive() {
    std::size_t head_bytes = std::string::npos;
    while ((head_bytes = received_.find(kHeadEnd)) == std::string::npos) {
      if (received_.size() > kCtlHeadBytesMax) return failed("the reply has no end of its head");
      if (Status more = receive_more(); !more) return Error{more.error()};
    }
    const Result<CtlReplyHead> head = parse_reply_head(std::string_view(received_).substr(0, head_bytes));
    if (!head) return failed(head.error());
    received_.erase(0, head_bytes + kHeadEnd.size());
    while (received_.size() < head->body_bytes) {
      if (Status more = receive_more(); !more) return Error{more.error()};
    }
    received_.resize(head->body_bytes);
    return CtlReply{head->status, head->json, std::move(received_)};
  }

 private:
  Status receive_more() {
    char buffer[65536];
    ssize_t count = 0;
    do {
      count = recv(socket_.get(), buffer, sizeof buffer, 0);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return system_error();
    if (count == 0) return failed("it closed the connection in the middle of its answer: look at its log");
    received_.append(buffer, static_cast<std::size_t>(count));
    return {};
  }

  [[nodiscard]] Error failed(const std::string& text) const { return Error{"popgated at " + path_ + ": " + text}; }
  [[nodiscard]] Error system_error() const {
    if (errno != EAGAIN && errno != EINPROGRESS) return failed(advice(errno));
    return failed("no answer within " + duration_text(timeout_) +
                  ": it is busy or hangs: look at its log and its processor time");
  }

  const std::string& path_;
  std::chrono::milliseconds timeout_;
  FileDescriptor socket_;
  std::string received_;
};

std::string http_text(const CtlRequest& request) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\nHost: popgate\r\nConnection: close\r\n";
  if (request.method != "GET") text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

}  // namespace

Result<CtlReply> ask_daemon(const std::string& socket_path, const CtlRequest& request,
                            std::chrono::milliseconds timeout) {
  Exchange exchange(socket_path, timeout);
  if (Status connected = exchange.connect(); !connected) return Error{connected.error()};
  if (Status sent = exchange.send(http_text(request)); !sent) return Error{sent.error()};
  return exchange.receive();
}

}  // namespace popgate
