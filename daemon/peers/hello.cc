// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/hello.h"

#include <sodium.h>

#include <algorithm>

namespace popgate {
namespace {

std::string quoted(std::string_view text) { return '"' + printable_ascii(text) + '"'; }

std::string versions(std::uint32_t min, std::uint32_t max) {
  return std::to_string(min) + (min == max ? "" : " to " + std::to_string(max));
}

}  // namespace

std::string printable_ascii(std::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return clean;
}

std::uint64_t secret_id(const HashSecret& secret) {
  static constexpr std::string_view kDomain = "popgate: which secret";
  unsigned char hash[16];
  static_assert(sizeof hash >= crypto_generichash_BYTES_MIN);
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(kDomain.data()), kDomain.size(),
                     secret.bytes.data(), secret.bytes.size());
  std::uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | hash[i];
  return id;
}

wire::Hello hello_of(const MeshIdentity& identity, HostInstant now) {
  return {identity.version_min,    identity.version_max, identity.pop,
          identity.node,           identity.incarnation, identity.secret_id,
          identity.rules_revision, identity.members,     now};
}

Result<std::uint32_t> check_hello(const MeshIdentity& own, const wire::Hello& theirs,
                                  std::optional<std::string_view> expected_node) {
  if (theirs.version_max < own.version_min || theirs.version_min > own.version_max) {
    return Error{"no common version: found " + versions(theirs.version_min, theirs.version_max) +
                 ", allowed: " + versions(own.version_min, own.version_max)};
  }
  if (theirs.pop != own.pop) return Error{"another PoP: found " + quoted(theirs.pop) + ", allowed: " + quoted(own.pop)};
  if (theirs.node == own.node) return Error{"node name clash: " + quoted(theirs.node) + " is this node's own name"};
  if (expected_node && theirs.node != *expected_node) {
    return Error{"another node at this address: found " + quoted(theirs.node) + ", allowed: " + quoted(*expected_node)};
  }
  if (std::find(own.members.begin(), own.members.end(), theirs.node) == own.members.end()) {
    return Error{"unknown node name: found " + quoted(theirs.node) + ", allowed: a member of the PoP's configuration"};
  }
  if (theirs.secret_id != own.secret_id) {
    return Error{"another hash secret: both nodes must read the same hash_secret_file"};
  }
  return std::min(own.version_max, theirs.version_max);
}

}  // namespace popgate
