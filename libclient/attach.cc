// SPDX-License-Identifier: Apache-2.0
#include "libclient/attach.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace popgate {
namespace {

// Xorshift64: jitter needs no better.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

}  // namespace

bool Attachment::set_path(std::string_view socket_path) noexcept {
  if (socket_path.empty() || socket_path.size() >= sizeof address_.sun_path) return false;
  address_ = {};
  address_.sun_family = AF_UNIX;
  socket_path.copy(address_.sun_path, socket_path.size());
  return true;
}

Attachment::Event Attachment::poll(HostInstant now, int ring, AttachMessage& message,
                                   AttachDescriptors& descriptors) noexcept {
  if (!socket_.is_open() && now >= next_attempt_) connect(now, ring);
  if (!socket_.is_open()) return Event::kNothing;
  const char* fault = nullptr;
  switch (receive_attach(socket_.get(), message, descriptors, fault)) {
    case AttachReceived::kNothing:
      return !welcomed_ && now - connected_at_ > kWelcomeTimeout ? end(now, Event::kEnded) : Event::kNothing;
    case AttachReceived::kEnd:
      return end(now, Event::kEnded);
    case AttachReceived::kFaulty:
      break;
    case AttachReceived::kMessage:
      if (message.kind == AttachKind::kWelcome) {
        welcomed_ = true;
        backoff_ = kAttachBackoffFirst;
        return Event::kWelcome;
      }
      if (message.kind == AttachKind::kRules && welcomed_) return Event::kRules;
      break;
  }
  refuse(now);
  return Event::kRefused;
}

void Attachment::connect(HostInstant now, int ring) noexcept {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&address_);
  if (!socket.is_open() || ::connect(socket.get(), address, sizeof address_) != 0) return disconnect(now);
  const int descriptors[] = {ring};
  if (send_attach(socket.get(), AttachMessage{}, descriptors) != AttachSent::kSent) return disconnect(now);
  connected_at_ = now;
  keep(std::move(socket));
}

void Attachment::keep(FileDescriptor socket) noexcept {
  socket_ = std::move(socket);
  descriptor_.store(socket_.get(), std::memory_order_relaxed);
}

void Attachment::disconnect(HostInstant now) noexcept {
  const std::int64_t full = backoff_.count();
  const auto off = static_cast<std::int64_t>(next_random(random_) % static_cast<std::uint64_t>(full / 2 + 1));
  next_attempt_ = now + milliseconds(full - off);
  backoff_ = std::min(backoff_ * 2, kAttachBackoffMax);
  abandon();
}

Attachment::Event Attachment::end(HostInstant now, Event event) noexcept {
  disconnect(now);
  return event;
}

void Attachment::refuse(HostInstant now) noexcept {
  backoff_ = kAttachBackoffMax;
  disconnect(now);
}

void Attachment::say_goodbye() noexcept {
  AttachMessage goodbye;
  goodbye.kind = AttachKind::kGoodbye;
  if (socket_.is_open()) (void)send_attach(socket_.get(), goodbye, {});
  abandon();
}

void Attachment::abandon() noexcept {
  descriptor_.store(-1, std::memory_order_relaxed);
  socket_.reset();
  welcomed_ = false;
}

}  // namespace popgate
