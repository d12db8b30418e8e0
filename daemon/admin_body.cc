// SPDX-License-Identifier: Apache-2.0
#include "daemon/admin_body.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace popgate {

Result<nlohmann::json> parse_admin_body(const std::string& text) {
  using json = nlohmann::json;
  std::vector<std::set<std::string>> fields;  // of each object that is open
  std::string twice;
  bool too_deep = false;
  const auto look = [&](int depth, json::parse_event_t event, json& parsed) {
    too_deep = too_deep || depth > kAdminBodyDepthMax;
    if (event == json::parse_event_t::object_start) fields.emplace_back();
    if (event == json::parse_event_t::object_end) fields.pop_back();
    const bool is_new = event != json::parse_event_t::key || fields.back().insert(parsed.get<std::string>()).second;
    if (!is_new && twice.empty()) twice = parsed.dump(-1, ' ', true, json::error_handler_t::replace);
    return true;
  };
  json body = json::parse(text, look, false);
  if (body.is_discarded()) return Error{"body: found no JSON, allowed: a JSON object"};
  if (too_deep) return Error{"body: found more than " + std::to_string(kAdminBodyDepthMax) + " levels, allowed: fewer"};
  if (!twice.empty()) return Error{"body: found the field " + twice + " twice, allowed: once"};
  return body;
}

}  // namespace popgate
