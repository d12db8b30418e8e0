// SPDX-License-Identifier: Apache-2.0
//
// A certificate authority for the length of a test, and files of what it issued. Nothing of it is ever stored in the
// source tree.
//
// Threads: values, but for the counter of serial numbers.
#pragma once

#include <string>

#include "daemon/openssl_handle.h"
#include "daemon/tls_credentials.h"
#include "daemon/tls_files.h"
#include "libclient/instant.h"

namespace popgate {

class TestCa {
 public:
  struct Wanted {
    std::string names;  // subjectAltName as openssl writes it: "URI:popgate://test/a"; "": none
    PopInstant from = PopClock::now() - std::chrono::hours(1);
    PopInstant until = PopClock::now() + std::chrono::hours(24 * 90);
    std::string usage = "serverAuth,clientAuth";
    bool is_ca = false;
    std::string key = "P-256";  // a curve, or "RSA" with a number of bits
    const char* digest = "SHA256";
  };
  struct Issued {
    std::string certificate;  // PEM
    std::string private_key;  // PEM
  };

  explicit TestCa(const std::string& common_name = "test CA",
                  PopInstant until = PopClock::now() + std::chrono::hours(24 * 3650), const std::string& key = "P-256");

  [[nodiscard]] Issued issue(const Wanted& wanted) const;
  [[nodiscard]] Issued issue_to(const std::string& pop, const std::string& node) const {
    return issue({.names = "URI:popgate://" + pop + "/" + node});
  }
  [[nodiscard]] const std::string& pem() const { return pem_; }

 private:
  openssl::Handle<EVP_PKEY> key_;
  openssl::Handle<X509> certificate_;
  std::string pem_;
};

/// Writes NODE.pem, NODE.key (mode 0600) and NODE.ca.pem into the folder.
TlsFiles write_tls_files(const std::string& folder, const std::string& node, const TestCa::Issued& issued,
                         const std::string& ca_pem);

/// What a node of PoP "test" reads from such files. Fails the process when they do not fit.
[[nodiscard]] SharedTlsCredentials test_credentials(const std::string& folder, const std::string& node,
                                                    const TestCa::Issued& issued, const std::string& ca_pem);

}  // namespace popgate
