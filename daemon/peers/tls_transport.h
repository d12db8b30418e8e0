// SPDX-License-Identifier: Apache-2.0
//
// TCP under TLS 1.3: a Transport whose streams have proven their node's name.
//
// New credentials count for the next handshake. Connections that are up stay up, and are judged again, against the new
// CAs at once and against the clock every kJudgeAgain: one whose certificate would be refused now is cut. So a CA that
// was removed and a certificate that has run out let nobody in for longer than that, whoever holds a connection open.
// Files are read when the operator says so (a reload) and not whenever they change: three files do not change at one
// instant, and who replaces them knows when he is done.
//
// Threads: the event loop's.
// Invariants: 1. No byte of a stream is read by its owner before both certificates were accepted.
// Limits: the owner bounds connections; the alarm about the own certificate is logged daily, hourly on its last day,
//         and every ten minutes when it is over.
#pragma once

#include <array>
#include <cstdint>
#include <set>

#include "daemon/event_loop.h"
#include "daemon/metrics.h"
#include "daemon/peers/tls_context.h"
#include "daemon/peers/tls_stream.h"
#include "daemon/transport.h"

namespace popgate {

inline constexpr microseconds kJudgeAgain = std::chrono::minutes(1);

/// For `popgatectl status`.
struct CertificateStatus {
  std::string name;
  PopInstant valid_until{};
  microseconds left{0};  // below 0: expired
  std::string alarm;     // empty: none
};

class TlsTransport final : public Transport {
 public:
  /// The loop carries the sockets; `clock` tells the time by which certificates are judged.
  [[nodiscard]] static Result<std::unique_ptr<TlsTransport>> make(EventLoop& loop, Reactor& clock,
                                                                  SharedTlsCredentials credentials,
                                                                  microseconds judge_every = kJudgeAgain);
  ~TlsTransport() override;

  [[nodiscard]] std::unique_ptr<Stream> dial(const SocketAddress& address, const std::string& node) override;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const SocketAddress& address,
                                                         AcceptFunction accepted) override;
  [[nodiscard]] bool proves_names() const override { return true; }
  [[nodiscard]] std::optional<PopInstant> own_proof_ends() const override {
    return context_.credentials().valid_until();
  }

  /// Whether use() would take them: not when the new certificate is not valid now while the old one is.
  [[nodiscard]] Status check(const SharedTlsCredentials& credentials) const;
  /// For the next handshakes; connections that are up are judged again. Changes nothing when check() refuses.
  [[nodiscard]] Status use(const SharedTlsCredentials& credentials);

  [[nodiscard]] const SharedTlsCredentials& credentials() const { return context_.shared_credentials(); }
  [[nodiscard]] CertificateStatus status() const;
  void visit(const MetricVisitor& visitor) const;

 private:
  TlsTransport(EventLoop& loop, Reactor& clock, TlsContext context);
  [[nodiscard]] std::unique_ptr<Stream> stream(const std::string& node, std::optional<SocketAddress> address,
                                               int descriptor);
  [[nodiscard]] Result<TlsContext> prepare(const SharedTlsCredentials& credentials) const;
  void judge_all();
  void sound_alarm();

  EventLoop& loop_;
  Reactor& clock_;
  TlsContext context_;
  TlsStream::Events events_;
  std::set<TlsStream*> streams_;
  Timer judge_timer_;
  HostInstant next_alarm_{};
  std::array<std::uint64_t, kTlsFailureKinds> failures_{};
  std::uint64_t handshakes_ = 0;
  std::uint64_t renewals_ = 0;
};

}  // namespace popgate
