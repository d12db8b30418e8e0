// SPDX-License-Identifier: Apache-2.0
#include "daemon/peers/hello.h"

#include <algorithm>

#include "daemon/hash_secret.h"
#include "daemon/hash_text.h"
#include "daemon/printable_text.h"

namespace popgate {
namespace {

std::string quoted(std::string_view text) { return '"' + printable_ascii(text) + '"'; }

std::vector<wire::SecretName> secrets_of(const MeshIdentity& identity) {
  std::vector<wire::SecretName> secrets{{identity.secret_id, true}};
  if (identity.second_secret) secrets.push_back(*identity.second_secret);
  return secrets;
}

std::string names_of(const std::vector<wire::SecretName>& secrets) {
  std::string names;
  for (const wire::SecretName& secret : secrets) names += (names.empty() ? "" : " or ") + hash_text(secret.id);
  return names;
}

std::string versions(std::uint32_t min, std::uint32_t max) {
  return std::to_string(min) + (min == max ? "" : " to " + std::to_string(max));
}

}  // namespace

std::optional<wire::SecretName> second_secret_name(const HashSecrets& secrets) {
  if (secrets.use == SecondSecret::kNone) return std::nullopt;
  return wire::SecretName{secret_id(secrets.second), secrets.use == SecondSecret::kCounted};
}

wire::Hello hello_of(const MeshIdentity& identity, HostInstant now) {
  return {identity.version_min, identity.version_max,    identity.pop,     identity.node, identity.incarnation,
          identity.secret_id,   identity.rules_revision, identity.members, now,           secrets_of(identity)};
}

std::vector<wire::SecretName> secrets_of(const wire::Hello& hello) {
  if (hello.secrets.empty()) return {{hello.secret_id, true}};
  return hello.secrets;
}

bool share_a_secret(const MeshIdentity& own, const std::vector<wire::SecretName>& theirs) {
  return std::ranges::any_of(secrets_of(own), [&](const wire::SecretName& secret) {
    return std::ranges::find(theirs, secret.id, &wire::SecretName::id) != theirs.end();
  });
}

bool count_alike(const MeshIdentity& own, const std::vector<wire::SecretName>& theirs) {
  return std::ranges::any_of(secrets_of(own), [&](const wire::SecretName& secret) {
    return secret.counted && std::ranges::find(theirs, secret) != theirs.end();
  });
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
  if (!share_a_secret(own, secrets_of(theirs))) {
    return Error{"another hash secret: found " + names_of(secrets_of(theirs)) + ", allowed: " +
                 names_of(secrets_of(own)) + ", the ids of this node's (popgatectl secret id FILE prints a file's)"};
  }
  return std::min(own.version_max, theirs.version_max);
}

}  // namespace popgate
