// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/tls_failure.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "daemon/result.h"

namespace popgate {
namespace {

constexpr std::string_view kNames[kTlsFailureKinds] = {
    "plain_text", "version",         "no_certificate", "unknown_ca", "expired", "not_yet_valid",
    "wrong_name", "bad_certificate", "refused_here",   "unfinished", "rubbish"};

std::string_view meaning_of_alert(int alert) {
  switch (alert) {
    case SSL_AD_UNKNOWN_CA:
      return "it does not know the CA of this node's certificate; compare mesh.tls.ca there with mesh.tls.certificate "
             "here";
    case SSL_AD_CERTIFICATE_EXPIRED:
      return "by its clock this node's certificate, or a CA's on the way, has expired";
    case SSL_AD_BAD_CERTIFICATE:
      return "it refuses the name in this node's certificate, or by its clock that is not valid yet";
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
      return "this node's certificate is not one for client and server";
    case SSL_AD_CERTIFICATE_REQUIRED:
      return "it got no certificate from this node";
    case SSL_AD_PROTOCOL_VERSION:
      return "it speaks no TLS 1.3";
    case SSL_AD_DECRYPT_ERROR:
      return "a signature of this node's certificate or handshake is not right";
    default:
      return "its log says why";
  }
}

TlsFailure refused_here(int reason) {
  const int alert = reason - SSL_AD_REASON_OFFSET;
  const char* const name = SSL_alert_desc_string_long(alert);
  if (alert == SSL_AD_PROTOCOL_VERSION) {
    return {TlsFailureKind::kVersion, "TLS: found a peer that refuses this version, allowed: TLS 1.3"};
  }
  return {TlsFailureKind::kRefusedHere,
          "TLS: it refused this node (" + std::string(name) + "): " + std::string(meaning_of_alert(alert))};
}

std::optional<TlsFailure> ended(bool connected) {
  if (connected) return std::nullopt;
  return TlsFailure{TlsFailureKind::kUnfinished,
                    "TLS: it closed the connection within the handshake (is mesh.tls missing there?)"};
}

}  // namespace

std::string_view tls_failure_name(TlsFailureKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  POPGATE_ASSERT(index < kTlsFailureKinds);
  return kNames[index];
}

std::optional<TlsFailure> tls_failure_of(std::span<const unsigned long> errors, bool connected) {
  for (const unsigned long error : errors) {
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) continue;
    const int reason = ERR_GET_REASON(error);
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256) return refused_here(reason);
    switch (reason) {
      case SSL_R_HTTP_REQUEST:
      case SSL_R_HTTPS_PROXY_REQUEST:
      case SSL_R_WRONG_VERSION_NUMBER:
        if (connected) break;
        return TlsFailure{TlsFailureKind::kPlainText,
                          "TLS: found what is no TLS, allowed: TLS 1.3 (is mesh.tls missing there?)"};
      case SSL_R_UNSUPPORTED_PROTOCOL:
      case SSL_R_WRONG_SSL_VERSION:
        return TlsFailure{TlsFailureKind::kVersion, "TLS: found TLS 1.2 or older, allowed: TLS 1.3"};
      case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return TlsFailure{TlsFailureKind::kNoCertificate,
                          "TLS: found no certificate, allowed: one of a CA of mesh.tls.ca"};
      case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return ended(connected);
      default:
        break;
    }
    const char* const text = ERR_reason_error_string(error);
    return TlsFailure{TlsFailureKind::kRubbish,
                      "TLS: found what no peer sends (" + std::string(text == nullptr ? "?" : text) + ")"};
  }
  return std::nullopt;
}

}  // namespace popgate
