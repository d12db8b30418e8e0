// SPDX-License-Identifier: Apache-2.0
//
// Reads the JSON body of an admin request.
//
// A field that comes twice is refused: parsers disagree on which one counts, so what a proxy or a script checked need
// not be what would be done.
//
// Threads: pure.
// Limits: kAdminBodyDepthMax objects or lists within each other.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/result.h"

namespace popgate {

inline constexpr int kAdminBodyDepthMax = 16;

/// The error names the field.
[[nodiscard]] Result<nlohmann::json> parse_admin_body(const std::string& text);

}  // namespace popgate
