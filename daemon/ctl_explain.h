// SPDX-License-Identifier: Apache-2.0
//
// What the daemon knows about one client under one rule, in sentences for somebody who was just woken up: blocked or
// not, until when, by whom, on what evidence, what it counts now, and how to end it.
//
// Threads: a pure function, but for the time zone, which is the process's.
#pragma once

#include <string>

namespace popgate {

class Fields;
struct ViewContext;

[[nodiscard]] std::string explain_view(const Fields& explanation, const ViewContext& context);

}  // namespace popgate
