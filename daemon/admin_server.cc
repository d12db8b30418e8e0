// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>

#include "daemon/printable_text.h"

namespace popgate {
namespace {

constexpr std::pair<evhttp_cmd_type, std::string_view> kMethods[] = {
    {EVHTTP_REQ_GET, "GET"},     {EVHTTP_REQ_POST, "POST"},       {EVHTTP_REQ_HEAD, "HEAD"},
    {EVHTTP_REQ_PUT, "PUT"},     {EVHTTP_REQ_DELETE, "DELETE"},   {EVHTTP_REQ_OPTIONS, "OPTIONS"},
    {EVHTTP_REQ_TRACE, "TRACE"}, {EVHTTP_REQ_CONNECT, "CONNECT"}, {EVHTTP_REQ_PATCH, "PATCH"},
};

ev_uint16_t all_methods() {
  unsigned all = 0;
  for (const auto& method : kMethods) all |= method.first;
  return static_cast<ev_uint16_t>(all);
}

std::string_view method_name(evhttp_cmd_type type) {
  for (const auto& [its_type, name] : kMethods) {
    if (its_type == type) return name;
  }
  return "?";  // libevent answers methods that it was not told to allow
}

std::string_view text_or_empty(const char* text) { return text == nullptr ? std::string_view() : text; }

std::string take_body(evhttp_request* request) {
  evbuffer* const buffer = evhttp_request_get_input_buffer(request);
  std::string body(evbuffer_get_length(buffer), '\0');
  evbuffer_remove(buffer, body.data(), body.size());
  return body;
}

constexpr std::size_t kLoggedPathBytesMax = 100;

timeval to_timeval(std::chrono::milliseconds duration) {
  return {.tv_sec = duration.count() / 1000, .tv_usec = duration.count() % 1000 * 1000};
}

// 0: none.
void set_timeouts(evhttp_request* request, std::chrono::milliseconds to_send, std::chrono::milliseconds to_read) {
  evhttp_connection* const connection = evhttp_request_get_connection(request);
  if (connection == nullptr) return;  // the client has left
  const timeval sending = to_timeval(to_send);
  const timeval reading = to_timeval(to_read);
  bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), &sending, &reading);
}

// Hands the text to the buffer, which frees it when the last byte is sent or the connection ends.
void add_text(evbuffer* buffer, std::string text) {
  if (text.empty()) return;
  auto* const owned = new std::string(std::move(text));
  const auto release = [](const void*, std::size_t, void* owner) { delete static_cast<std::string*>(owner); };
  const int added = evbuffer_add_reference(buffer, owned->data(), owned->size(), release, owned);
  POPGATE_ASSERT(added == 0);
}

void send_reply(evhttp_request* request, AdminAnswer answer) {
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", answer.content_type.c_str());
  evhttp_add_header(headers, "Cache-Control", "no-store");
  if (!answer.allow.empty()) evhttp_add_header(headers, "Allow", answer.allow.c_str());
  evbuffer* const body = evbuffer_new();
  POPGATE_ASSERT(body != nullptr);
  add_text(body, std::move(answer.text));
  evhttp_send_reply(request, answer.status, nullptr, body);
  evbuffer_free(body);
}

}  // namespace

// A request whose answer is still to come. libevent keeps the request until it is answered, or the server is gone.
struct AdminServer::Exchange {
  AdminServer* server;
  evhttp_request* request;
};

void AdminServer::HttpDeleter::operator()(evhttp* http) const noexcept { evhttp_free(http); }

Result<std::unique_ptr<AdminServer>> AdminServer::open(EventLoop& loop, const std::string& socket_path,
                                                       const Limits& limits) {
  Result<UnixListener> socket = UnixListener::listen(
      socket_path, {"admin socket", SOCK_STREAM, limits.access.mode, kAdminBacklog, limits.access.group});
  if (!socket) return Error{socket.error()};
  return std::unique_ptr<AdminServer>(new AdminServer(loop, *std::move(socket), limits));
}

AdminServer::AdminServer(EventLoop& loop, UnixListener socket, const Limits& limits)
    : socket_(std::move(socket)),
      access_(limits.access),
      client_timeout_(limits.client_timeout),
      connections_(loop, {limits.connections_max, kAdminHeaderBytesMax + kAdminBodyBytesRead}),
      http_(evhttp_new(loop.base())) {
  POPGATE_ASSERT(http_ != nullptr);
  evhttp_set_max_headers_size(http_.get(), kAdminHeaderBytesMax);
  evhttp_set_max_body_size(http_.get(), kAdminBodyBytesRead);
  // Reads an oversize body to its end and drops it: closing with unread bytes would take the 413 away from the client.
  evhttp_set_flags(http_.get(), EVHTTP_SERVER_LINGERING_CLOSE);
  evhttp_set_allowed_methods(http_.get(), all_methods());
  const timeval timeout = to_timeval(limits.client_timeout);
  evhttp_set_timeout_tv(http_.get(), &timeout);
  const auto receive = [](evhttp_request* request, void* self) { static_cast<AdminServer*>(self)->receive(request); };
  evhttp_set_gencb(http_.get(), receive, this);
  const auto accept = [](event_base*, void* connections) { return static_cast<AdminConnections*>(connections)->add(); };
  evhttp_set_bevcb(http_.get(), accept, &connections_);
  evconnlistener* const listener =
      evconnlistener_new(loop.base(), nullptr, nullptr, LEV_OPT_CLOSE_ON_EXEC, 0, socket_.descriptor());
  POPGATE_ASSERT(listener != nullptr && evhttp_bind_listener(http_.get(), listener) != nullptr);
  connections_.watch(listener);
}

AdminServer::~AdminServer() = default;

void AdminServer::route(std::string method, std::string path, AdminHandler handler) {
  router_.route(std::move(method), std::move(path), std::move(handler));
}

std::optional<SocketPeer> AdminServer::allowed_peer(evhttp_request* request) {
  evhttp_connection* const connection = evhttp_request_get_connection(request);
  const int descriptor = bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
  std::optional<SocketPeer> peer = socket_peer(descriptor);
  if (peer && may_connect(*peer, access_, SocketOwner::this_process())) return peer;
  ++figures_.strangers_refused;
  if (stranger_log_.allow(HostClock::now())) {
    spdlog::warn("admin socket: found {}, allowed: root, the daemon's user and members of admin_socket_group{}",
                 peer ? peer->text() : "a process that the kernel does not name", stranger_log_.withheld_text());
  }
  return std::nullopt;
}

void AdminServer::receive(evhttp_request* request) {
  ++figures_.requests;
  const auto exchange = std::make_shared<Exchange>(Exchange{this, request});
  exchanges_.insert(exchange);
  AdminReply reply([weak = std::weak_ptr<Exchange>(exchange)](AdminAnswer answer) {
    if (const auto still_there = weak.lock()) still_there->server->send(still_there, std::move(answer));
  });
  const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
  AdminRouter::Raw raw{method_name(evhttp_request_get_command(request)), text_or_empty(evhttp_uri_get_path(uri)),
                       text_or_empty(evhttp_uri_get_query(uri)), take_body(request)};
  const std::optional<SocketPeer> peer = allowed_peer(request);
  if (!peer) {
    return reply.error(403, "found another user, allowed: root, the daemon's user and members of admin_socket_group");
  }
  if (raw.method != "GET" && raw.method != "HEAD")
    spdlog::info("admin socket: {} {} by {}", raw.method, printable_ascii(raw.path, kLoggedPathBytesMax), peer->text());
  if (raw.body.size() > kAdminBodyBytesMax) {
    return reply.error(
        413, "a body of " + std::to_string(raw.body.size()) + " bytes, allowed: " + std::to_string(kAdminBodyBytesMax));
  }
  router_.dispatch(std::move(raw), std::move(reply));
}

void AdminServer::send(const std::shared_ptr<Exchange>& exchange, AdminAnswer answer) {
  if (answer.status >= 500) {
    ++figures_.failed;
  } else if (answer.status >= 400) {
    ++figures_.refused;
  }
  exchanges_.erase(exchange);
  // libevent also reads while it writes, to notice a client that leaves: without this, a reply that takes longer than
  // the time-out would be cut for want of a next request.
  set_timeouts(exchange->request, std::chrono::milliseconds(0), client_timeout_);
  const auto sent = [](evhttp_request* request, void* self) {
    const std::chrono::milliseconds timeout = static_cast<AdminServer*>(self)->client_timeout_;
    set_timeouts(request, timeout, timeout);
  };
  evhttp_request_set_on_complete_cb(exchange->request, sent, this);
  send_reply(exchange->request, std::move(answer));
}

void AdminServer::visit(const MetricVisitor& visitor) const {
  const auto counter = [&](std::string_view name, std::string_view meaning, std::uint64_t value) {
    visitor({name, "requests", meaning, static_cast<double>(value), true, "", ""});
  };
  counter("popgate_admin_requests", "Requests on the admin socket.", figures_.requests);
  counter("popgate_admin_requests_refused", "Of these, answered with a status of 400 to 499.", figures_.refused);
  counter("popgate_admin_strangers_refused", "Of these, by users whom the socket's group does not let in.",
          figures_.strangers_refused);
  counter("popgate_admin_requests_failed", "Of these, answered with a status of 500 and more.", figures_.failed);
}

}  // namespace popgate
