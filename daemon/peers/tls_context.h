// SPDX-License-Identifier: Apache-2.0
//
// What every handshake with the same credentials shares: TLS 1.3 and nothing older, both sides with a certificate.
//
// No session is resumed: a ticket would let a peer in whose certificate has expired or whose CA was removed since, and
// two connections a pair of nodes need no cheaper handshake. TLS 1.3 has neither renegotiation nor compression; both
// are switched off all the same.
//
// Threads: the event loop's.
// Limits: kPeerChainBytesMax of certificates from a peer, kChainMax of them on the way to a CA.
#pragma once

#include <optional>
#include <string>

#include "daemon/openssl_handle.h"
#include "daemon/peers/peer_certificate.h"
#include "daemon/result.h"
#include "daemon/tls_credentials.h"

namespace popgate {

inline constexpr long kPeerChainBytesMax = 32L * 1024;

/// One handshake's question and answer.
struct TlsHandshake {
  PeerExpectation expected;
  PeerVerdict verdict;
};

class TlsContext {
 public:
  [[nodiscard]] static Result<TlsContext> make(SharedTlsCredentials credentials);

  /// For one connection. The handshake outlives it.
  [[nodiscard]] openssl::Handle<SSL> connection(TlsHandshake& handshake) const;
  [[nodiscard]] const TlsCredentials& credentials() const { return *credentials_; }
  [[nodiscard]] const SharedTlsCredentials& shared_credentials() const { return credentials_; }

 private:
  TlsContext(SharedTlsCredentials credentials, openssl::Handle<SSL_CTX> context)
      : credentials_(std::move(credentials)), context_(std::move(context)) {}

  SharedTlsCredentials credentials_;
  openssl::Handle<SSL_CTX> context_;
};

}  // namespace popgate
