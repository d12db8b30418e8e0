// SPDX-License-Identifier: Apache-2.0
#include "daemon/mitigate/mitigation.h"

#include <sodium.h>

namespace popgate {

std::string_view decided_under_name(DecidedUnder mode) {
  switch (mode) {
    case DecidedUnder::kCounters:
      return "counters";
    case DecidedUnder::kLocal:
      return "local";
    case DecidedUnder::kClosed:
      return "closed";
  }
  return "";
}

NodeId node_id(std::string_view node_name) {
  // A fixed key: every node must get the same id for a name, and names come from configuration, not from clients.
  static constexpr unsigned char kNodeIdKey[crypto_shorthash_KEYBYTES] = {'p', 'o', 'p', 'g', 'a', 't', 'e', ' ',
                                                                          'n', 'o', 'd', 'e', ' ', 'i', 'd', 0};
  unsigned char hash[crypto_shorthash_BYTES];
  crypto_shorthash(hash, reinterpret_cast<const unsigned char*>(node_name.data()), node_name.size(), kNodeIdKey);
  NodeId id = 0;
  for (const unsigned char byte : hash) id = id << 8 | byte;
  return id;
}

}  // namespace popgate
