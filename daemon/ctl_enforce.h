// SPDX-License-Identifier: Apache-2.0
//
// The daemon's answer to `enforce` as people read it: what does not block, since when, by whose order, and whether the
// peers know.
//
// Threads: pure functions, but for the time zone, which is the process's.
#pragma once

#include <string>

#include "daemon/ctl_views.h"

namespace popgate {

[[nodiscard]] std::string enforce_view(const Fields& answer, const ViewContext& context);

/// For the head of other views: nothing, or a line that says what is off. `enforcement` is the part of /status.
[[nodiscard]] std::string enforcement_text(const Fields& enforcement);

}  // namespace popgate
