// SPDX-License-Identifier: Apache-2.0
//
// Whether a peer's certificate may be believed: it leads to a CA of ours, is valid now, is for its side of the
// connection, and stands for the node that it should.
//
// The dialler knows which node it wants to reach. The acceptor knows only the PoP; whether the name in the certificate
// is the one in the hello is looked at when that comes (Mesh::admit).
//
// Revocation lists are not read: a node whose key is lost is taken out of mesh.peers, or the CA is replaced.
//
// Threads: pure functions.
// Invariants: 1. A verdict with a failure names nobody.
// Limits: the chain's, set by TlsContext: kPeerChainBytesMax, kChainMax.
#pragma once

#include <optional>
#include <string>

#include "daemon/openssl_handle.h"
#include "daemon/peers/tls_failure.h"
#include "libclient/instant.h"

namespace popgate {

struct PeerExpectation {
  std::string pop;
  std::string node;  // empty: any of the PoP
  PopInstant now{};
};

struct PeerVerdict {
  std::string node;                   // the name that is proven; empty when something is wrong
  std::optional<TlsFailure> failure;  // and what
};

/// `context` has everything but the name to check. Leaves in it the error that OpenSSL's alert is made from.
[[nodiscard]] PeerVerdict judge_certificate(X509_STORE_CTX* context, const PeerExpectation& expected);

/// The certificate of a connection that is up, against what is trusted now. That it is not valid *yet* is no fault
/// then: it was valid before, so a clock was set back.
[[nodiscard]] PeerVerdict judge_again(SSL* ssl, X509_STORE* trusted, const PeerExpectation& expected);

}  // namespace popgate
