// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_router.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

#include "daemon/result.h"

namespace popgate {
namespace {

template <typename Map>
std::string names_of(const Map& map) {
  std::string names;
  for (const auto& entry : map) names.append(names.empty() ? "" : ", ").append(entry.first);
  return names;
}

}  // namespace

void AdminRouter::route(std::string method, std::string path, AdminHandler handler) {
  const bool added = paths_[std::move(path)].emplace(std::move(method), std::move(handler)).second;
  POPGATE_ASSERT(added);
}

void AdminRouter::dispatch(Raw raw, AdminReply reply) const {
  const auto path = paths_.find(raw.path);
  if (path == paths_.end()) {
    return reply.error(404, "no such path: " + std::string(raw.path) + "; there are " + names_of(paths_));
  }
  const auto method = path->second.find(raw.method);
  if (method == path->second.end()) {
    const std::string allowed = names_of(path->second);
    return reply.error(405, path->first + " takes " + allowed + ", not " + std::string(raw.method), allowed);
  }
  Result<AdminRequest> request = decode_admin_request(raw.query, std::move(raw.body));
  if (!request) return reply.error(400, request.error());
  try {
    method->second(*request, std::move(reply));  // dropped by what is thrown, and so answered with 500
  } catch (const std::exception& thrown) {
    spdlog::error("admin interface: {} {}: {}", raw.method, raw.path, thrown.what());
  }
}

}  // namespace popgate
