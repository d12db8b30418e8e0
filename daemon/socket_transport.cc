// SPDX-License-Identifier: Apache-2.0
#include "daemon/socket_transport.h"

#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <event2/util.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/bufferevent_stream.h"

namespace popgate {
namespace {

class SocketListener final : public Listener {
 public:
  using Accepted = std::function<void(int, const SocketAddress&)>;

  SocketListener(EventLoop& loop, Accepted accepted)
      : accepted_(std::move(accepted)), resume_(loop, [this] { evconnlistener_enable(listener_); }) {}
  ~SocketListener() override {
    if (listener_ != nullptr) evconnlistener_free(listener_);
  }
  SocketListener(const SocketListener&) = delete;
  SocketListener& operator=(const SocketListener&) = delete;

  [[nodiscard]] Status open(event_base* base, const SocketAddress& address);
  [[nodiscard]] const SocketAddress& address() const override { return address_; }
  [[nodiscard]] std::uint64_t failures() const override { return failures_; }

 private:
  void pause();

  Accepted accepted_;
  Timer resume_;
  evconnlistener* listener_ = nullptr;
  SocketAddress address_;
  std::uint64_t failures_ = 0;
};

Status SocketListener::open(event_base* base, const SocketAddress& address) {
  listener_ = evconnlistener_new_bind(
      base,
      [](evconnlistener*, evutil_socket_t descriptor, sockaddr* remote, int bytes, void* self) {
        static_cast<SocketListener*>(self)->accepted_(descriptor,
                                                      SocketAddress::of(remote, static_cast<socklen_t>(bytes)));
      },
      this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, kListenBacklog, address.get(),
      static_cast<int>(address.bytes()));
  if (listener_ == nullptr) return Error{"cannot listen on " + address.text() + ": " + std::strerror(errno)};
  evconnlistener_set_error_cb(listener_,
                              [](evconnlistener*, void* self) { static_cast<SocketListener*>(self)->pause(); });
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (getsockname(evconnlistener_get_fd(listener_), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
    return Error{std::string("cannot ask for the listening address: ") + std::strerror(errno)};
  }
  address_ = SocketAddress::of(reinterpret_cast<const sockaddr*>(&bound), bytes);
  return {};
}

void SocketListener::pause() {
  ++failures_;
  evconnlistener_disable(listener_);
  resume_.start_once(kListenPause);
}

}  // namespace

std::unique_ptr<Stream> SocketTransport::dial(const SocketAddress& address, const std::string& /*name*/) {
  bufferevent* const event = bufferevent_socket_new(loop_.base(), -1, BEV_OPT_CLOSE_ON_FREE);
  if (event == nullptr) return nullptr;
  return std::make_unique<BuffereventStream>(event, address);
}

Result<std::unique_ptr<Listener>> SocketTransport::listen(const SocketAddress& address, AcceptFunction accepted) {
  return listen_on(loop_, address, [this, accepted = std::move(accepted)](int descriptor, const SocketAddress& remote) {
    bufferevent* const event = bufferevent_socket_new(loop_.base(), descriptor, BEV_OPT_CLOSE_ON_FREE);
    if (event == nullptr) {
      evutil_closesocket(descriptor);
      return;
    }
    accepted(std::make_unique<BuffereventStream>(event, std::nullopt), remote);
  });
}

Result<std::unique_ptr<Listener>> listen_on(EventLoop& loop, const SocketAddress& address,
                                            std::function<void(int, const SocketAddress&)> accepted) {
  auto listener = std::make_unique<SocketListener>(loop, std::move(accepted));
  if (Status opened = listener->open(loop.base(), address); !opened) return Error{opened.error()};
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace popgate
