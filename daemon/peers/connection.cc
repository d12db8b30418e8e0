// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/connection.h"

#include <utility>

namespace popgate {
namespace {

// The first four bytes of a TLS record: its type, its version, half of its length.
bool looks_like_tls(std::size_t length) {
  constexpr std::size_t kAlert = 0x1503;
  constexpr std::size_t kHandshake = 0x1603;
  return length >> 16 == kAlert || length >> 16 == kHandshake;
}

std::string refused_length(std::size_t length) {
  if (looks_like_tls(length)) return "found TLS, allowed: plain text, because this node has no mesh.tls";
  return "frame length: found " + std::to_string(length) + ", allowed: 1 to " + std::to_string(kFrameBytesMax);
}

}  // namespace

Connection::Connection(std::unique_ptr<Stream> stream, std::size_t output_bytes_max, Events events)
    : stream_(std::move(stream)), output_bytes_max_(output_bytes_max), events_(std::move(events)) {}

std::shared_ptr<Connection> Connection::over(std::unique_ptr<Stream> stream, std::size_t output_bytes_max,
                                             Events events) {
  std::shared_ptr<Connection> connection(new Connection(std::move(stream), output_bytes_max, std::move(events)));
  connection->stream_->start(*connection);
  return connection;
}

bool Connection::send(const wire::Message& message) {
  if (!is_open()) return true;  // its owner has been told, or has closed it
  if (output_bytes() > output_bytes_max_) return false;
  const std::string frame = frame_of(wire::encode(message));
  stream_->write(frame);
  ++counts_.frames_out;
  counts_.bytes_out += frame.size();
  return true;
}

void Connection::send_last(const wire::Message& message) {
  if (is_open() && send(message)) stream_->flush();
  shut();
}

std::optional<microseconds> Connection::round_trip() const { return is_open() ? stream_->round_trip() : std::nullopt; }

void Connection::shut() { stream_.reset(); }

std::size_t Connection::output_bytes() const { return is_open() ? stream_->unsent_bytes() : 0; }

void Connection::stream_connected() {
  const auto alive = shared_from_this();
  if (events_.on_connected) events_.on_connected();
}

void Connection::stream_drained() {
  const auto alive = shared_from_this();
  if (events_.on_drained) events_.on_drained();
}

void Connection::stream_ended(const std::string& why) {
  const auto alive = shared_from_this();
  lose({why, false, stream_->is_refused()});
}

void Connection::stream_readable() {
  const auto alive = shared_from_this();
  while (is_open()) {
    const std::string_view piece = stream_->peek();
    if (piece.empty()) break;
    counts_.bytes_in += piece.size();
    reader_.append(piece);
    stream_->consume(piece.size());
    read_frames();
  }
  if (is_open() && events_.on_batch_read) events_.on_batch_read();
}

void Connection::read_frames() {
  while (const auto payload = reader_.next()) {
    ++counts_.frames_in;
    const auto message = wire::decode(*payload);
    if (!message) return lose({message.error(), true});
    events_.on_message(*message);
    if (!is_open()) return;
  }
  if (reader_.broken()) lose({refused_length(reader_.refused_bytes()), true});
}

void Connection::lose(const Loss& loss) {
  if (!is_open()) return;
  shut();
  if (events_.on_lost) events_.on_lost(loss);
}

}  // namespace popgate
