// SPDX-License-Identifier: Apache-2.0
//
// A server in the test's own loop that says what the test tells it to: only for what a real memcached cannot be made to
// do, such as odd replies, replies in pieces, and not reading.
//
// Threads: the loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/event_loop.h"
#include "libclient/instant.h"

struct bufferevent;
struct evconnlistener;
struct sockaddr;

namespace popgate {

class ScriptedShard {
 public:
  /// One command as it came, an add with its data: "incr KEY 3", "add KEY 0 90 1 5", "get KEY KEY".
  struct Command {
    std::string verb;
    std::string line;
  };
  /// What is sent back, byte for byte; nothing when empty.
  using Script = std::function<std::string(const Command&)>;

  ScriptedShard(EventLoop& loop, Script script);
  ~ScriptedShard();
  ScriptedShard(const ScriptedShard&) = delete;
  ScriptedShard& operator=(const ScriptedShard&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Every command of all connections, in the order of their coming.
  [[nodiscard]] const std::vector<Command>& commands() const { return commands_; }
  [[nodiscard]] std::size_t count(const std::string& verb) const;
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }

  /// From now on: one byte of every reply at a time.
  void send_in_single_bytes() { single_bytes_ = true; }
  /// From now on nothing is read, so that the other side's bytes stay with it.
  void stop_reading();
  /// Also what still waits on connections that the other side has given up.
  void read_again();
  void close_all();
  /// To every open connection.
  void send(const std::string& bytes);

  /// As a memcached without any counters would answer: nothing to read, every add stored, no incr found.
  static std::string empty(const Command& command);

 private:
  static void on_accept(evconnlistener* listener, int fd, sockaddr* address, int bytes, void* self);
  static void on_readable(bufferevent* event, void* self);
  void take_commands(bufferevent* event);
  void reply(bufferevent* event, const std::string& bytes);

  EventLoop& loop_;
  Script script_;
  evconnlistener* listener_ = nullptr;
  std::uint16_t port_ = 0;
  std::vector<bufferevent*> connections_;
  std::vector<Command> commands_;
  std::deque<std::pair<bufferevent*, char>> pieces_;
  Timer piece_timer_;
  bool single_bytes_ = false;
  bool reads_ = true;
};

}  // namespace popgate
