// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/count/scripted_shard.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>

#include <algorithm>
#include <stdexcept>

namespace popgate {
namespace {

constexpr int kSmallBuffer = 4096;  // so that little fits between the two sides once nothing is read

}  // namespace

ScriptedShard::ScriptedShard(EventLoop& loop, Script script)
    : loop_(loop), script_(std::move(script)), piece_timer_(loop, [this] {
        if (pieces_.empty()) return;
        bufferevent_write(pieces_.front().first, &pieces_.front().second, 1);
        pieces_.pop_front();
      }) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener_ = evconnlistener_new_bind(loop.base(), on_accept, this, LEV_OPT_CLOSE_ON_FREE, 8,
                                      reinterpret_cast<sockaddr*>(&address), sizeof address);
  if (listener_ == nullptr) throw std::runtime_error("no port to listen on");
  setsockopt(evconnlistener_get_fd(listener_), SOL_SOCKET, SO_RCVBUF, &kSmallBuffer, sizeof kSmallBuffer);
  socklen_t bytes = sizeof address;
  getsockname(evconnlistener_get_fd(listener_), reinterpret_cast<sockaddr*>(&address), &bytes);
  port_ = ntohs(address.sin_port);
  piece_timer_.start_every(microseconds(100));
}

ScriptedShard::~ScriptedShard() {
  close_all();
  evconnlistener_free(listener_);
}

std::size_t ScriptedShard::count(const std::string& verb) const {
  return static_cast<std::size_t>(
      std::count_if(commands_.begin(), commands_.end(), [&](const Command& command) { return command.verb == verb; }));
}

void ScriptedShard::stop_reading() {
  reads_ = false;
  for (bufferevent* event : connections_) bufferevent_disable(event, EV_READ);
}

void ScriptedShard::read_again() {
  reads_ = true;
  for (bufferevent* event : connections_) bufferevent_enable(event, EV_READ);
}

void ScriptedShard::close_all() {
  for (bufferevent* event : connections_) bufferevent_free(event);
  connections_.clear();
  pieces_.clear();
}

void ScriptedShard::send(const std::string& bytes) {
  for (bufferevent* event : connections_) bufferevent_write(event, bytes.data(), bytes.size());
}

std::string ScriptedShard::empty(const Command& command) {
  if (command.verb == "add") return "STORED\r\n";
  if (command.verb == "incr") return "NOT_FOUND\r\n";
  return "END\r\n";
}

void ScriptedShard::on_accept(evconnlistener* /*listener*/, int fd, sockaddr* /*address*/, int /*bytes*/, void* self) {
  auto& shard = *static_cast<ScriptedShard*>(self);
  bufferevent* const event = bufferevent_socket_new(shard.loop_.base(), fd, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(event, on_readable, nullptr, nullptr, self);
  bufferevent_enable(event, shard.reads_ ? EV_READ | EV_WRITE : EV_WRITE);
  shard.connections_.push_back(event);
}

void ScriptedShard::on_readable(bufferevent* event, void* self) {
  static_cast<ScriptedShard*>(self)->take_commands(event);
}

void ScriptedShard::take_commands(bufferevent* event) {
  evbuffer* const input = bufferevent_get_input(event);
  for (;;) {
    const std::size_t held = evbuffer_get_length(input);
    const std::string text(reinterpret_cast<const char*>(evbuffer_pullup(input, -1)), held);
    std::size_t end = text.find("\r\n");
    if (end == std::string::npos) return;
    std::string line = text.substr(0, end);
    const std::string verb = line.substr(0, line.find(' '));
    if (verb == "add") {
      const std::size_t data_end = text.find("\r\n", end + 2);
      if (data_end == std::string::npos) return;
      line += " " + text.substr(end + 2, data_end - end - 2);
      end = data_end;
    }
    evbuffer_drain(input, end + 2);
    commands_.push_back({verb, line});
    reply(event, script_(commands_.back()));
  }
}

void ScriptedShard::reply(bufferevent* event, const std::string& bytes) {
  if (single_bytes_) {
    for (const char byte : bytes) pieces_.emplace_back(event, byte);
  } else {
    bufferevent_write(event, bytes.data(), bytes.size());
  }
}

}  // namespace popgate
