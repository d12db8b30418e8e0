// SPDX-License-Identifier: Apache-2.0
#include "daemon/secret_views.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/hash_secret.h"
#include "daemon/hash_text.h"
#include "daemon/peers/hello.h"

namespace popgate {
namespace {

std::vector<wire::SecretName> names_of(const HashSecrets& secrets) {
  std::vector<wire::SecretName> names{{secret_id(secrets.first), true}};
  if (const auto second = second_secret_name(secrets)) names.push_back(*second);
  return names;
}

}  // namespace

nlohmann::json secrets_of(const std::vector<wire::SecretName>& names) {
  nlohmann::json listed = nlohmann::json::array();
  for (const wire::SecretName& name : names) listed.push_back({{"id", hash_text(name.id)}, {"counted", name.counted}});
  return listed;
}

nlohmann::json secrets_of(const HashSecrets& secrets) { return secrets_of(names_of(secrets)); }

std::optional<std::string> peer_with_more_secrets(const HashSecrets& own, const std::vector<PeerStatus>& peers) {
  const std::vector<wire::SecretName> names = names_of(own);
  for (const PeerStatus& peer : peers) {
    if (!peer.heard) continue;  // it may never come back, and an operator must be able to act without it
    const bool has_more = std::ranges::any_of(peer.secrets, [&](const wire::SecretName& secret) {
      return std::ranges::find(names, secret.id, &wire::SecretName::id) == names.end();
    });
    if (has_more) return peer.name;
  }
  return std::nullopt;
}

}  // namespace popgate
