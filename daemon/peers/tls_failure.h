// SPDX-License-Identifier: Apache-2.0
//
// Why a TLS connection between two nodes did not come about or did not last: a kind to count by, and a sentence.
//
// In TLS 1.3 the dialler is done first: it learns that the other side refuses it only when it reads, as an alert of one
// byte. So an alert is put into words that say what to look at here, and the side that refuses logs the whole reason.
//
// Threads: pure functions.
// Limits: kTlsFailureKinds kinds, so that a stranger cannot make new metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace popgate {

enum class TlsFailureKind : std::uint8_t {
  kPlainText,       // it does not speak TLS
  kVersion,         // it speaks no TLS 1.3
  kNoCertificate,   // it showed none
  kUnknownCa,       // its certificate leads to no CA of ours
  kExpired,         // its certificate, or a CA's on the way, has expired
  kNotYetValid,     // the same, the other way
  kWrongName,       // another node's, another PoP's or nobody's certificate
  kBadCertificate,  // anything else about its certificate
  kRefusedHere,     // it sent an alert: it does not want this node
  kUnfinished,      // the connection ended, or time did, within the handshake
  kRubbish,         // bytes that TLS does not allow, or that somebody changed on the way
};
inline constexpr std::size_t kTlsFailureKinds = 11;

/// A metric's label: "unknown_ca".
[[nodiscard]] std::string_view tls_failure_name(TlsFailureKind kind);

struct TlsFailure {
  TlsFailureKind kind;
  std::string text;
};

/// What OpenSSL's errors of one connection say; `connected`: its handshake was over. Empty when they say nothing: then
/// the socket's error does. An unexpected end after the handshake is nothing, too: frames have lengths of their own.
[[nodiscard]] std::optional<TlsFailure> tls_failure_of(std::span<const unsigned long> errors, bool connected);

}  // namespace popgate
