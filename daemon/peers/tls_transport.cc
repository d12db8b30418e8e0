// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/tls_transport.h"

#include <event2/util.h>
#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "daemon/socket_transport.h"

namespace popgate {
namespace {

constexpr std::chrono::minutes kAlarmWhenOver{10};
constexpr std::chrono::hours kAlarmOnTheLastDay{1};
constexpr std::chrono::hours kAlarmBefore{24};

bool is_valid(const TlsCredentials& credentials, PopInstant now) {
  return now >= credentials.valid_from() && now <= credentials.valid_until();
}

microseconds alarm_interval(const TlsCredentials& credentials, PopInstant now) {
  if (!is_valid(credentials, now)) return kAlarmWhenOver;
  return credentials.valid_until() - now < std::chrono::hours(24) ? kAlarmOnTheLastDay : kAlarmBefore;
}

}  // namespace

Result<std::unique_ptr<TlsTransport>> TlsTransport::make(EventLoop& loop, Reactor& clock,
                                                         SharedTlsCredentials credentials, microseconds judge_every) {
  auto context = TlsContext::make(std::move(credentials));
  if (!context) return Error{"mesh.tls: " + context.error()};
  std::unique_ptr<TlsTransport> transport(new TlsTransport(loop, clock, *std::move(context)));
  transport->sound_alarm();
  transport->judge_timer_.start_every(judge_every);
  return transport;
}

TlsTransport::TlsTransport(EventLoop& loop, Reactor& clock, TlsContext context)
    : loop_(loop),
      clock_(clock),
      context_(std::move(context)),
      events_{.on_handshake = [this] { ++handshakes_; },
              .on_failure = [this](const TlsFailure& failure) { ++failures_[static_cast<std::size_t>(failure.kind)]; },
              .on_gone = [this](TlsStream& stream) { streams_.erase(&stream); }},
      judge_timer_(clock, [this] {
        sound_alarm();
        judge_all();
      }) {}

TlsTransport::~TlsTransport() { POPGATE_ASSERT(streams_.empty()); }

std::unique_ptr<Stream> TlsTransport::dial(const SocketAddress& address, const std::string& node) {
  return stream(node, address, -1);
}

Result<std::unique_ptr<Listener>> TlsTransport::listen(const SocketAddress& address, AcceptFunction accepted) {
  return listen_on(loop_, address, [this, accepted = std::move(accepted)](int descriptor, const SocketAddress& remote) {
    if (auto made = stream("", std::nullopt, descriptor)) {
      accepted(std::move(made), remote);
    } else {
      evutil_closesocket(descriptor);
    }
  });
}

std::unique_ptr<Stream> TlsTransport::stream(const std::string& node, std::optional<SocketAddress> address,
                                             int descriptor) {
  auto handshake = std::make_unique<TlsHandshake>();
  handshake->expected = {context_.credentials().name().pop, node, clock_.wall_now()};
  auto ssl = context_.connection(*handshake);
  if (ssl == nullptr) return nullptr;
  auto made = TlsStream::make(loop_.base(), {std::move(handshake), std::move(ssl), address, descriptor}, events_);
  if (made != nullptr) streams_.insert(made.get());
  return made;
}

Result<TlsContext> TlsTransport::prepare(const SharedTlsCredentials& credentials) const {
  const PopInstant now = clock_.wall_now();
  if (is_valid(context_.credentials(), now) && !is_valid(*credentials, now)) {
    return Error{"mesh.tls: " + credentials->alarm(now) + "; the one that is in use stays"};
  }
  auto context = TlsContext::make(credentials);
  if (!context) return Error{"mesh.tls: " + context.error()};
  return context;
}

Status TlsTransport::check(const SharedTlsCredentials& credentials) const {
  const auto context = prepare(credentials);
  return context ? Status() : Error{context.error()};
}

Status TlsTransport::use(const SharedTlsCredentials& credentials) {
  if (credentials->same_as(context_.credentials())) {
    judge_all();
    return {};
  }
  auto context = prepare(credentials);
  if (!context) return Error{context.error()};
  context_ = *std::move(context);
  ++renewals_;
  spdlog::info("mesh.tls: new handshakes use the certificate \"{}\" valid until {}",
               context_.credentials().name().text(), certificate_time_text(context_.credentials().valid_until()));
  next_alarm_ = {};
  sound_alarm();
  judge_all();
  return {};
}

// Ending a stream is deferred, so none goes while the set is walked.
void TlsTransport::judge_all() {
  const PopInstant now = clock_.wall_now();
  for (TlsStream* const open : streams_) open->judge_again(context_.credentials(), now);
}

void TlsTransport::sound_alarm() {
  const PopInstant now = clock_.wall_now();
  const std::string alarm = context_.credentials().alarm(now);
  if (alarm.empty() || clock_.host_now() < next_alarm_) return;
  next_alarm_ = clock_.host_now() + alarm_interval(context_.credentials(), now);
  spdlog::log(is_valid(context_.credentials(), now) ? spdlog::level::warn : spdlog::level::err, "mesh.tls: {}", alarm);
}

CertificateStatus TlsTransport::status() const {
  const PopInstant now = clock_.wall_now();
  const TlsCredentials& credentials = context_.credentials();
  return {credentials.name().text(), credentials.valid_until(), credentials.valid_until() - now,
          credentials.alarm(now)};
}

void TlsTransport::visit(const MetricVisitor& visitor) const {
  visitor({"popgate_peers_certificate_left", "seconds",
           "Until this node's certificate or its CA's expires; below 0 it has",
           std::chrono::duration<double>(status().left).count(), false, "", ""});
  visitor({"popgate_peers_certificate_renewals", "reloads",
           "Times that a reload brought another certificate, key or CA", static_cast<double>(renewals_), true, "", ""});
  visitor({"popgate_peers_tls_handshakes", "connections", "TLS handshakes in which the peer proved its name",
           static_cast<double>(handshakes_), true, "", ""});
  for (std::size_t i = 0; i < kTlsFailureKinds; ++i) {
    visitor({"popgate_peers_tls_failures", "connections", "TLS connections that were refused or failed, by the reason",
             static_cast<double>(failures_[i]), true, "kind", tls_failure_name(static_cast<TlsFailureKind>(i))});
  }
}

}  // namespace popgate
