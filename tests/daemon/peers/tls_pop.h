// SPDX-License-Identifier: Apache-2.0
//
// A PoP of meshes under TLS: a CA of its own, a certificate for every node.
//
// Threads: one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/daemon/peers/pop_of_meshes.h"
#include "tests/daemon/peers/raw_peer.h"
#include "tests/daemon/publish/test_folder.h"
#include "tests/daemon/test_ca.h"

namespace popgate {

/// For what a relay or another object of the base may hold until the end.
struct TlsPopFiles {
  TestFolder folder{"/tmp"};
  TestCa ca{"CA of the test"};
};

class TlsPop : public TlsPopFiles, public PopOfMeshes {
 public:
  explicit TlsPop(const std::vector<std::string>& names) : PopOfMeshes(names) {
    for (const std::string& name : names) use_tls(name, credentials(name, ca.issue_to("test", name)));
  }
  /// Of a node whose files are these and the CAs'; `ca_pem` empty: this PoP's CA.
  [[nodiscard]] SharedTlsCredentials credentials(const std::string& node, const TestCa::Issued& issued,
                                                 const std::string& ca_pem = {}) const {
    return test_credentials(folder.path(), node, issued, ca_pem.empty() ? ca.pem() : ca_pem);
  }
};

}  // namespace popgate
