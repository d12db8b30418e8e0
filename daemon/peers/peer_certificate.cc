// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/peer_certificate.h"

#include "daemon/certificate_name.h"
#include "daemon/tls_credentials.h"

namespace popgate {
namespace {

PeerVerdict refuse(TlsFailureKind kind, const std::string& what, const std::string& found, const std::string& allowed) {
  return {"", TlsFailure{kind, "TLS: " + what + ": found " + found + ", allowed: " + allowed}};
}

PeerVerdict refuse_chain(X509_STORE_CTX* context, const PeerExpectation& expected) {
  const int error = X509_STORE_CTX_get_error(context);
  const X509* const leaf = X509_STORE_CTX_get0_cert(context);
  const X509* const current = X509_STORE_CTX_get_current_cert(context);
  const X509* const culprit = current == nullptr ? leaf : current;
  const std::string found = describe_certificate(culprit);
  const std::string valid_now = "one that is valid now, " + certificate_time_text(expected.now);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return refuse(TlsFailureKind::kExpired, "expired certificate",
                    found + ", valid until " + certificate_time_text(valid_until(culprit)), valid_now);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return refuse(TlsFailureKind::kNotYetValid, "certificate not valid yet",
                    found + ", valid from " + certificate_time_text(valid_from(culprit)), valid_now);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:  // another CA of the same name
      return refuse(TlsFailureKind::kUnknownCa, "unknown CA", describe_certificate(leaf),
                    "one that leads to a CA of mesh.tls.ca");
    default:
      return refuse(TlsFailureKind::kBadCertificate, "bad certificate",
                    found + " (" + X509_verify_cert_error_string(error) + ")", "one for client and server");
  }
}

PeerVerdict check_name(const X509* certificate, const PeerExpectation& expected) {
  const auto name = name_in(certificate);
  const std::string node = expected.node.empty() ? "NODE" : expected.node;
  const std::string allowed = '"' + CertificateName{expected.pop, node}.text() + '"';
  if (!name) return {"", TlsFailure{TlsFailureKind::kWrongName, "TLS: wrong name: " + name.error()}};
  const bool right = name->pop == expected.pop && (expected.node.empty() || name->node == expected.node);
  if (!right) return refuse(TlsFailureKind::kWrongName, "wrong name", describe_certificate(certificate), allowed);
  return {name->node, std::nullopt};
}

}  // namespace

PeerVerdict judge_certificate(X509_STORE_CTX* context, const PeerExpectation& expected) {
  if (X509_verify_cert(context) != 1) return refuse_chain(context, expected);
  PeerVerdict verdict = check_name(X509_STORE_CTX_get0_cert(context), expected);
  if (verdict.failure) X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
  return verdict;
}

PeerVerdict judge_again(SSL* ssl, X509_STORE* trusted, const PeerExpectation& expected) {
  const openssl::Handle<X509_STORE_CTX> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), trusted, SSL_get0_peer_certificate(ssl), SSL_get_peer_cert_chain(ssl));
  X509_STORE_CTX_set_purpose(context.get(),
                             SSL_is_server(ssl) == 1 ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context.get()), kTlsSecurityLevel);
  X509_STORE_CTX_set_time(context.get(), 0,
                          std::chrono::floor<std::chrono::seconds>(expected.now.time_since_epoch()).count());
  PeerVerdict verdict = judge_certificate(context.get(), expected);
  ERR_clear_error();
  if (verdict.failure && verdict.failure->kind == TlsFailureKind::kNotYetValid) verdict.failure.reset();
  return verdict;
}

}  // namespace popgate
