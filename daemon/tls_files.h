// SPDX-License-Identifier: Apache-2.0
//
// Where the mesh's certificates are, and what was read from there (tls_credentials.h), for those who only pass it on.
//
// Threads: values.
#pragma once

#include <memory>
#include <string>

namespace popgate {

/// Three PEM files.
struct TlsFiles {
  std::string certificate;  // the node's, then what lies between it and the CA
  std::string private_key;  // mode 0600 or 0400
  std::string ca;           // one or several; several while a CA is replaced
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

class TlsCredentials;
using SharedTlsCredentials = std::shared_ptr<const TlsCredentials>;

}  // namespace popgate
