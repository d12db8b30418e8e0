// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/tls_context.h"

#include <utility>

namespace popgate {
namespace {

using openssl::Handle;

// What Debian's OpenSSL offers for TLS 1.3, written out so that a machine's openssl.cnf does not decide it.
constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr char kGroups[] = "X25519:P-256:P-384";

int verify(X509_STORE_CTX* context, void* /*argument*/) {
  auto* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& handshake = *static_cast<TlsHandshake*>(SSL_get_app_data(ssl));
  handshake.verdict = judge_certificate(context, handshake.expected);
  return handshake.verdict.failure ? 0 : 1;
}

bool set_protocol(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_security_level(context, kTlsSecurityLevel);
  SSL_CTX_set_max_cert_list(context, kPeerChainBytesMax);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, kChainMax);
  SSL_CTX_set_cert_verify_callback(context, verify, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(context, kCiphers) == 1 && SSL_CTX_set1_groups_list(context, kGroups) == 1 &&
         SSL_CTX_set_num_tickets(context, 0) == 1;
}

bool set_credentials(SSL_CTX* context, const TlsCredentials& credentials) {
  SSL_CTX_set1_cert_store(context, credentials.trusted());
  return SSL_CTX_use_certificate(context, credentials.certificate()) == 1 &&
         SSL_CTX_set1_chain(context, credentials.chain()) == 1 &&
         SSL_CTX_use_PrivateKey(context, credentials.private_key()) == 1;
}

}  // namespace

Result<TlsContext> TlsContext::make(SharedTlsCredentials credentials) {
  ERR_clear_error();
  Handle<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  if (context == nullptr || !set_protocol(context.get()) || !set_credentials(context.get(), *credentials)) {
    return Error{"OpenSSL refuses the certificate \"" + credentials->name().text() + "\": " + openssl::take_error()};
  }
  return TlsContext(std::move(credentials), std::move(context));
}

Handle<SSL> TlsContext::connection(TlsHandshake& handshake) const {
  Handle<SSL> ssl(SSL_new(context_.get()));
  if (ssl == nullptr) return nullptr;
  SSL_set_app_data(ssl.get(), &handshake);
  const auto now = std::chrono::floor<std::chrono::seconds>(handshake.expected.now.time_since_epoch());
  X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl.get()), now.count());
  return ssl;
}

}  // namespace popgate
