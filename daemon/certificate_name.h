// SPDX-License-Identifier: Apache-2.0
//
// Which node a certificate stands for: a subject alternative name of the form URI, popgate://POP/NODE.
//
// A DNS name would not do. It does not say which PoP, and one CA often serves several; and any web server's certificate
// of the same CA with a host name like a node's would let its holder block clients. Nobody issues a popgate:// URI by
// accident. The subject's common name is not looked at, nor is any other name.
//
// Threads: pure functions.
// Invariants: 1. parse_certificate_name(n.text()) gives n.
//             2. A certificate with two such names stands for nobody: which of them would it be?
// Limits: POP and NODE are plain names (is_plain_name): nothing in them needs escaping.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/result.h"
#include "libclient/instant.h"

struct x509_st;

namespace popgate {

/// From so long before a certificate's end it is an alarm.
inline constexpr std::chrono::hours kCertificateWarning{14 * 24};

struct CertificateName {
  std::string pop;
  std::string node;
  [[nodiscard]] std::string text() const { return "popgate://" + pop + "/" + node; }
  friend bool operator==(const CertificateName&, const CertificateName&) = default;
};

[[nodiscard]] std::optional<CertificateName> parse_certificate_name(std::string_view uri);

/// The one name of that form in the certificate. The error says what was found and what is allowed.
[[nodiscard]] Result<CertificateName> name_in(const x509_st* certificate);

/// For messages, whatever a stranger wrote into it: `"popgate://fra/b" (issuer "CN = a CA")`.
[[nodiscard]] std::string describe_certificate(const x509_st* certificate);

[[nodiscard]] PopInstant valid_from(const x509_st* certificate);
[[nodiscard]] PopInstant valid_until(const x509_st* certificate);
/// RFC 3339 in UTC, in seconds.
[[nodiscard]] std::string certificate_time_text(PopInstant instant);

}  // namespace popgate
