// SPDX-License-Identifier: Apache-2.0
#include "daemon/collect/worker.h"

#include <event2/event.h>

#include <array>

namespace popgate {

Worker::Worker(FileDescriptor socket, HostInstant now, const Surroundings& around)
    : around_(around), socket_(std::move(socket)), accepted_at_(now) {
  socklen_t bytes = sizeof credentials_;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &credentials_, &bytes) != 0) credentials_ = {};
  const auto call = [](evutil_socket_t, short what, void* self) { static_cast<Worker*>(self)->on_event(what); };
  readable_.reset(event_new(around.base, socket_.get(), EV_READ | EV_PERSIST, call, this));
  writable_.reset(event_new(around.base, socket_.get(), EV_WRITE, call, this));
  event_add(readable_.get(), nullptr);
}

void Worker::on_event(short what) {
  if ((what & EV_WRITE) != 0) deliver_offer();
  if ((what & EV_READ) != 0) receive();
}

void Worker::receive() {
  for (unsigned i = 0; i < kWorkerMessagesPerTurn && socket_.is_open(); ++i) {
    AttachMessage message;
    AttachDescriptors descriptors;
    const char* fault = nullptr;
    switch (receive_attach(socket_.get(), message, descriptors, fault)) {
      case AttachReceived::kNothing:
        return;
      case AttachReceived::kEnd:
        return leave();
      case AttachReceived::kFaulty:
        return refuse(fault);
      case AttachReceived::kMessage:
        break;
    }
    if (message.kind == AttachKind::kHello && state_ == State::kGreeting) {
      accept_ring(std::move(descriptors.items[0]));
    } else if (message.kind == AttachKind::kGoodbye) {
      leave();
    } else {
      refuse("a message out of turn");
    }
  }
}

void Worker::accept_ring(FileDescriptor ring) {
  Result<std::unique_ptr<RingReader>> reader =
      RingReader::open(std::move(ring), *around_.ledger, around_.ring_is_attached);
  if (!reader) return refuse(reader.error());
  ring_ = std::move(*reader);
  state_ = State::kAttached;
  deliver_offer();
  around_.attached();
}

void Worker::deliver_offer() {
  const WorkerOffer& offer = *around_.offer;
  if (state_ != State::kAttached || offer.table_generation == 0) return;
  if (table_sent_ == offer.table_generation && rules_sent_ == offer.rules_generation) return;
  const bool welcome = table_sent_ != offer.table_generation;
  AttachMessage message;
  message.kind = welcome ? AttachKind::kWelcome : AttachKind::kRules;
  message.table_bytes = welcome ? offer.table_bytes : 0;
  message.rules_bytes = offer.rules_bytes;
  const std::array<int, 2> descriptors = {offer.table.get(), offer.rules.get()};
  switch (send_attach(socket_.get(), message, std::span<const int>(descriptors).subspan(welcome ? 0 : 1))) {
    case AttachSent::kSent:
      table_sent_ = offer.table_generation;
      rules_sent_ = offer.rules_generation;
      break;
    case AttachSent::kLater:
      event_add(writable_.get(), nullptr);
      break;
    case AttachSent::kEnd:
      leave();
      break;
  }
}

void Worker::refuse(const std::string& reason) {
  AttachMessage message;
  message.kind = AttachKind::kRefused;
  reason.copy(message.reason, sizeof message.reason - 1);
  if (socket_.is_open()) (void)send_attach(socket_.get(), message, {});
  discard_messages();
  around_.refused(reason);
  leave();
}

// What is not read when a Unix socket closes resets the connection, and the worker would not learn the reason.
void Worker::discard_messages() {
  for (unsigned i = 0; i < kWorkerMessagesPerTurn && socket_.is_open(); ++i) {
    AttachMessage message;
    AttachDescriptors descriptors;
    const char* fault = nullptr;
    const AttachReceived received = receive_attach(socket_.get(), message, descriptors, fault);
    if (received == AttachReceived::kNothing || received == AttachReceived::kEnd) return;
  }
}

void Worker::expire_greeting(HostInstant now) {
  if (state_ == State::kGreeting && now - accepted_at_ > kHelloTimeout) refuse("no hello");
}

void Worker::leave() {
  disconnect();
  if (ring_ == nullptr) {
    state_ = State::kGone;
    return;
  }
  ring_->look();
  ring_->refold();
  state_ = State::kLeaving;
}

void Worker::disconnect() {
  readable_.reset();
  writable_.reset();
  socket_.reset();
}

std::uint64_t Worker::look() {
  if (ring_ == nullptr) return 0;
  return state_ == State::kLeaving ? ring_->waiting() : ring_->look();
}

void Worker::finish_leaving() {
  if (state_ != State::kLeaving || ring_->waiting() != 0 || ring_->fold()) return;
  state_ = State::kGone;
}

}  // namespace popgate
