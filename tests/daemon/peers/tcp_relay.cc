// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/peers/tcp_relay.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

#include <algorithm>
#include <string_view>

namespace popgate {

TcpRelay::TcpRelay(EventLoop& loop, std::uint16_t target_port) : loop_(loop), target_port_(target_port) {
  auto listener = listen_on(loop, *SocketAddress::resolve("127.0.0.1", 0),
                            [this](int descriptor, const SocketAddress&) { on_accept(descriptor); });
  POPGATE_ASSERT(listener.ok());
  listener_ = *std::move(listener);
}

TcpRelay::~TcpRelay() {
  for (const auto& pipe : pipes_) close(*pipe);
}

void TcpRelay::on_accept(int descriptor) {
  ++accepted_;
  recorded_.clear();
  bufferevent* near = bufferevent_socket_new(loop_.base(), descriptor, BEV_OPT_CLOSE_ON_FREE);
  if (mode_ == Mode::kCut) return bufferevent_free(near);
  auto pipe = std::make_unique<Pipe>(Pipe{this, near, nullptr});
  if (mode_ == Mode::kRubbish) {
    constexpr std::string_view kRubbish = "HTTP/1.1 400 Bad Request\r\n\r\n";
    bufferevent_setcb(near, nullptr, nullptr, on_event, pipe.get());
    bufferevent_write(near, kRubbish.data(), kRubbish.size());
    bufferevent_enable(near, EV_READ | EV_WRITE);
    pipes_.push_back(std::move(pipe));
    return;
  }
  pipe->far = bufferevent_socket_new(loop_.base(), -1, BEV_OPT_CLOSE_ON_FREE);
  const auto target = *SocketAddress::resolve("127.0.0.1", target_port_);
  for (bufferevent* bev : {pipe->near, pipe->far}) {
    bufferevent_setcb(bev, on_readable, nullptr, on_event, pipe.get());
    bufferevent_enable(bev, mode_ == Mode::kPass || mode_ == Mode::kFlip ? EV_READ | EV_WRITE : EV_WRITE);
  }
  if (mode_ == Mode::kStall) bufferevent_disable(pipe->near, EV_READ);
  (void)bufferevent_socket_connect(pipe->far, target.get(), static_cast<int>(target.bytes()));
  pipes_.push_back(std::move(pipe));
}

void TcpRelay::on_readable(bufferevent* bev, void* pipe) {
  const auto& [relay, near, far] = *static_cast<Pipe*>(pipe);
  if (relay->mode_ == Mode::kStall) return;
  evbuffer* const input = bufferevent_get_input(bev);
  if (bev == near && relay->recording_) {
    const auto* const bytes = reinterpret_cast<const char*>(evbuffer_pullup(input, -1));
    relay->recorded_.append(bytes == nullptr ? "" : bytes, evbuffer_get_length(input));
  }
  if (bev == near && relay->mode_ == Mode::kFlip && evbuffer_get_length(input) > 0) {
    constexpr std::size_t kTlsHeadBytes = 5;  // behind it, so that what is met is a changed message and no other one
    evbuffer_pullup(input, -1)[std::min(kTlsHeadBytes, evbuffer_get_length(input) - 1)] ^= 1;
  }
  bufferevent_write_buffer(bev == near ? far : near, bufferevent_get_input(bev));
}

void TcpRelay::on_event(bufferevent* /*bev*/, short what, void* pipe) {
  if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;
  auto& ended = *static_cast<Pipe*>(pipe);
  ended.relay->close(ended);
}

void TcpRelay::close(Pipe& pipe) {
  for (bufferevent** bev : {&pipe.near, &pipe.far}) {
    if (*bev != nullptr) bufferevent_free(*bev);
    *bev = nullptr;
  }
}

void TcpRelay::set_mode(Mode mode) {
  mode_ = mode;
  for (const auto& pipe : pipes_) {
    if (pipe->near == nullptr) continue;
    if (mode == Mode::kCut || mode == Mode::kRubbish || pipe->far == nullptr) {
      close(*pipe);
      continue;
    }
    for (bufferevent* bev : {pipe->near, pipe->far}) {
      if (mode == Mode::kStall) bufferevent_disable(bev, EV_READ);
      if (mode != Mode::kPass) continue;
      bufferevent_enable(bev, EV_READ);
      on_readable(bev, pipe.get());
    }
  }
}

}  // namespace popgate
