// SPDX-License-Identifier: Apache-2.0
//
// What a node shows its peers and believes of them: its certificate, the private key of it, and the CAs whose
// certificates it accepts. Read from three PEM files and checked against each other before anything uses them.
//
// That a certificate has run out is no fault of the files: a daemon that does not start, or does not read new rules,
// because of it protects nobody. It is an alarm, and the peers' refusal.
//
// Threads: immutable; may be made on one thread and used on another.
// Invariants: 1. The private key belongs to the certificate, which stands for the expected node and leads to a CA of
//                the file, as both client and server.
//             2. Every key and digest on that way is strong enough for a handshake, and the node's key of a kind that
//                TLS 1.3 knows.
// Limits: kPemBytesMax a file; kCaCertificatesMax CAs; kChainMax certificates between the node's and the CA's.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "daemon/certificate_name.h"
#include "daemon/openssl_handle.h"
#include "daemon/result.h"
#include "daemon/tls_files.h"
#include "libclient/instant.h"

namespace popgate {

inline constexpr std::size_t kPemBytesMax = std::size_t{1} << 20;
inline constexpr int kCaCertificatesMax = 64;
inline constexpr int kChainMax = 8;
/// OpenSSL's level 2, what Debian starts from: no key or digest of less than 112 bits of security. Said here and for
/// every handshake, so that a machine's openssl.cnf does not decide which peers know each other.
inline constexpr int kTlsSecurityLevel = 2;

class TlsCredentials {
 public:
  /// The error names the file, what was found and what is allowed.
  [[nodiscard]] static Result<SharedTlsCredentials> load(const TlsFiles& files, const CertificateName& own);

  [[nodiscard]] const CertificateName& name() const { return name_; }
  [[nodiscard]] X509* certificate() const { return certificate_.get(); }
  [[nodiscard]] STACK_OF(X509) * chain() const { return chain_.get(); }
  [[nodiscard]] EVP_PKEY* private_key() const { return private_key_.get(); }
  [[nodiscard]] X509_STORE* trusted() const { return trusted_.get(); }

  /// Within these every certificate from the node's to its CA's is valid.
  [[nodiscard]] PopInstant valid_from() const { return valid_from_; }
  [[nodiscard]] PopInstant valid_until() const { return valid_until_; }
  /// The same certificate, key and CAs.
  [[nodiscard]] bool same_as(const TlsCredentials& other) const { return text_hash_ == other.text_hash_; }

  /// A sentence when the certificate has run out, is not valid yet, or has less than kCertificateWarning left; empty
  /// otherwise.
  [[nodiscard]] std::string alarm(PopInstant now) const;

 private:
  TlsCredentials() = default;
  [[nodiscard]] Status read_certificates(const std::string& path, const CertificateName& own);
  [[nodiscard]] Status read_key(const TlsFiles& files);
  [[nodiscard]] Status read_trusted(const std::string& path);
  [[nodiscard]] Status check_trusted(const TlsFiles& files);
  [[nodiscard]] Error distrusted(const X509_STORE_CTX* context, const TlsFiles& files) const;

  CertificateName name_;
  openssl::Handle<X509> certificate_;
  openssl::Handle<STACK_OF(X509)> chain_;
  openssl::Handle<EVP_PKEY> private_key_;
  openssl::Handle<X509_STORE> trusted_;
  PopInstant valid_from_{};
  PopInstant valid_until_{};
  std::string text_hash_;
};

}  // namespace popgate
