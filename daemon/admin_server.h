// SPDX-License-Identifier: Apache-2.0
//
// The admin socket: HTTP/1.1 on a Unix socket of mode 0600, by libevent's evhttp. docs/admin-api.md is its contract.
//
// A large reply is handed to libevent by reference with its length, and goes out in pieces of 16 KiB a turn of the loop
// as fast as the client reads. So it is neither copied nor chunked, a client sees when it was cut short, and one that
// leaves in mid-reply needs no care.
//
// Threads: the event loop's.
// Invariants: 1. Only the daemon's user, root, and the group that the configuration names are answered: the kernel is
//                asked for each request who is at the other end. Every order is logged with its uid and pid.
//             2. A handler's reply may outlive the client's connection and the server.
// Limits: kAdminBodyBytesMax a body (413; beyond kAdminBodyBytesRead in libevent's own words), kAdminHeaderBytesMax of
//         request line and headers, both together ahead of the reply that is on its way, kAdminConnectionsMax clients,
//         further ones wait; a client that sends nothing for kAdminClientTimeout, or does not read what the kernel
//         holds for it (about 200 KB), is cut. The process must ignore SIGPIPE.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "daemon/admin_connections.h"
#include "daemon/admin_router.h"
#include "daemon/log_limiter.h"
#include "daemon/metrics.h"
#include "daemon/result.h"
#include "daemon/socket_access.h"
#include "daemon/unix_listener.h"
#include "libclient/instant.h"

struct evhttp;
struct evhttp_request;

namespace popgate {

inline constexpr std::size_t kAdminBodyBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kAdminBodyBytesRead = std::size_t{256} << 10;  // so that 413 can be said in JSON
inline constexpr std::size_t kAdminHeaderBytesMax = std::size_t{16} << 10;
inline constexpr std::size_t kAdminConnectionsMax = 32;
inline constexpr int kAdminBacklog = 16;
inline constexpr std::chrono::milliseconds kAdminClientTimeout{10'000};

class AdminServer {
 public:
  struct Limits {
    std::size_t connections_max = kAdminConnectionsMax;
    std::chrono::milliseconds client_timeout = kAdminClientTimeout;
    SocketAccess access{};
  };

  /// Takes over the socket of a dead daemon; refuses where one listens. The loop must outlive the server.
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> open(EventLoop& loop, const std::string& socket_path) {
    return open(loop, socket_path, Limits{});
  }
  [[nodiscard]] static Result<std::unique_ptr<AdminServer>> open(EventLoop& loop, const std::string& socket_path,
                                                                 const Limits& limits);
  /// Cuts every client; replies that are still to come go nowhere.
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  void route(std::string method, std::string path, AdminHandler handler);
  [[nodiscard]] std::size_t connection_count() { return connections_.count(); }
  void visit(const MetricVisitor& visitor) const;

 private:
  struct Exchange;
  struct HttpDeleter {
    void operator()(evhttp* http) const noexcept;
  };
  struct Figures {
    std::uint64_t strangers_refused = 0;
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;  // answered with 400 to 499
    std::uint64_t failed = 0;   // answered with 500 and more
  };

  AdminServer(EventLoop& loop, UnixListener socket, const Limits& limits);
  void receive(evhttp_request* request);
  void send(const std::shared_ptr<Exchange>& exchange, AdminAnswer answer);

  /// Who asks, when it may; otherwise that was logged.
  [[nodiscard]] std::optional<SocketPeer> allowed_peer(evhttp_request* request);

  UnixListener socket_;
  SocketAccess access_;
  std::chrono::milliseconds client_timeout_;
  AdminConnections connections_;
  AdminRouter router_;
  // Waiting for their answer, one a connection at most. Replies hold them weakly; behind router_, so that a reply that
  // goes with a handler finds nobody.
  std::set<std::shared_ptr<Exchange>> exchanges_;
  Figures figures_;
  LogLimiter stranger_log_;
  std::unique_ptr<evhttp, HttpDeleter> http_;  // last: frees connections and listener before what they use
};

}  // namespace popgate
