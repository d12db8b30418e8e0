// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/tls_stream.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace popgate {
namespace {

// A fatal alert, protocol_version: OpenSSL sends none to who has not begun to speak TLS, and who expects plain text
// should see what he has met (connection.cc does).
constexpr unsigned char kNoTls[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46};

}  // namespace

std::unique_ptr<TlsStream> TlsStream::make(event_base* base, Setup setup, const Events& events) {
  const bool dialled = setup.address.has_value();
  SSL* const ssl = setup.ssl.release();  // the bufferevent frees it, also when it cannot be made
  bufferevent* const event = bufferevent_openssl_socket_new(
      base, setup.descriptor, ssl, dialled ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING,
      BEV_OPT_CLOSE_ON_FREE);
  if (event == nullptr) return nullptr;
  return std::unique_ptr<TlsStream>(new TlsStream(event, ssl, std::move(setup), events));
}

TlsStream::TlsStream(bufferevent* event, SSL* ssl, Setup setup, const Events& events)
    : BuffereventStream(event, setup.address),
      events_(events),
      handshake_(std::move(setup.handshake)),
      ssl_(ssl),
      dialled_(setup.address.has_value()) {}

TlsStream::~TlsStream() {
  if (!dialled_ && proven_.empty() && !ended_) {
    events_.on_failure({TlsFailureKind::kUnfinished, "TLS: the handshake did not end in time"});
  }
  events_.on_gone(*this);
  if (!ended_ && !proven_.empty()) (void)SSL_shutdown(ssl_);
  if (!dialled_ && proven_.empty()) linger();
  // The bufferevent is freed with the next turn of the loop; nothing of ours may be asked until then.
  SSL_set_app_data(ssl_, nullptr);
  ERR_clear_error();
}

void TlsStream::linger() const {
  const evutil_socket_t descriptor = bufferevent_getfd(event());
  if (is_plain_) (void)send(descriptor, kNoTls, sizeof kNoTls, MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)shutdown(descriptor, SHUT_WR);
  char taken[4096];
  for (std::size_t bytes = 0; bytes < kLingerBytesMax; bytes += sizeof taken) {
    if (recv(descriptor, taken, sizeof taken, MSG_DONTWAIT) <= 0) break;
  }
}

// An accepted bufferevent has begun its handshake by itself.
void TlsStream::connect() {
  if (dialled_) BuffereventStream::connect();
}

void TlsStream::on_connected() {
  proven_ = handshake_->verdict.node;
  POPGATE_ASSERT(!proven_.empty());
  events_.on_handshake();
  BuffereventStream::on_connected();
}

void TlsStream::flush() {
  if (proven_.empty() || ended_) return;
  evbuffer* const output = bufferevent_get_output(event());
  (void)evbuffer_unfreeze(output, 1);
  evbuffer_iovec piece{};
  while (evbuffer_peek(output, -1, nullptr, &piece, 1) > 0 && piece.iov_len > 0) {
    // The whole piece: a write that libevent has begun must go on with no less.
    const int written = SSL_write(ssl_, piece.iov_base, static_cast<int>(piece.iov_len));
    if (written <= 0) break;
    (void)evbuffer_drain(output, static_cast<std::size_t>(written));
  }
  (void)evbuffer_freeze(output, 1);
  ERR_clear_error();
}

void TlsStream::judge_again(const TlsCredentials& credentials, PopInstant now) {
  if (proven_.empty() || ended_ || distrusted_) return;
  const PeerExpectation expected{handshake_->expected.pop, proven_, now};
  distrusted_ = popgate::judge_again(ssl_, credentials.trusted(), expected).failure;
  if (distrusted_) bufferevent_trigger_event(event(), BEV_EVENT_ERROR, BEV_TRIG_DEFER_CALLBACKS);
}

std::string TlsStream::error_text() {
  const int socket_error = EVUTIL_SOCKET_ERROR();
  const std::optional<TlsFailure> failed = failure();
  ended_ = !distrusted_;  // a connection that is cut for its certificate is in order as such, and says so
  if (failed) {
    refused_ = failed->kind != TlsFailureKind::kUnfinished;
    is_plain_ = failed->kind == TlsFailureKind::kPlainText;
    events_.on_failure(*failed);
    return failed->text;
  }
  const bool says_nothing = socket_error == 0 || socket_error == EAGAIN;  // an end without TLS's own close
  if (!proven_.empty() && says_nothing) return "closed by the other side";
  return evutil_socket_error_to_string(socket_error);
}

std::optional<TlsFailure> TlsStream::failure() {
  if (distrusted_) return distrusted_;
  if (handshake_->verdict.failure) return handshake_->verdict.failure;
  const bool connected = !proven_.empty();
  std::vector<unsigned long> errors;
  while (const unsigned long error = bufferevent_get_openssl_error(event())) errors.push_back(error);
  if (auto failed = tls_failure_of(errors, connected)) return failed;
  // A write that failed may only be the end of a connection whose alert nobody has read yet.
  char rest[4096];
  ERR_clear_error();
  for (std::size_t bytes = 0; bytes < kLingerBytesMax && SSL_read(ssl_, rest, sizeof rest) > 0;) bytes += sizeof rest;
  if (handshake_->verdict.failure) return handshake_->verdict.failure;
  errors.clear();
  while (const unsigned long error = ERR_get_error()) errors.push_back(error);
  const auto read = tls_failure_of(errors, connected);
  return read && read->kind != TlsFailureKind::kRubbish ? read : std::nullopt;
}

}  // namespace popgate
