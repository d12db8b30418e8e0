// SPDX-License-Identifier: Apache-2.0
//
// The daemon's answers as people read them, one function an answer (explain's is ctl_explain.h). Programs use --json
// instead.
//
// Threads: pure functions, but for the time zone, which is the process's.
#pragma once

#include <string>

#include "libclient/instant.h"

namespace popgate {

class Fields;

/// What a view needs beside the answer.
struct ViewContext {
  PopInstant now{};      // of this machine, on which the daemon runs too
  std::string command;   // how the tool was called, "popgatectl --socket …", for the commands that a view suggests
  std::uint64_t offset;  // of mitigations, as asked
};

[[nodiscard]] std::string status_view(const Fields& status, const ViewContext& context);
[[nodiscard]] std::string peers_view(const Fields& peers, const ViewContext& context);
[[nodiscard]] std::string rules_view(const Fields& rules, const ViewContext& context);
[[nodiscard]] std::string mitigations_view(const Fields& mitigations, const ViewContext& context);
[[nodiscard]] std::string block_view(const Fields& answer, const ViewContext& context);
[[nodiscard]] std::string lift_view(const Fields& answer, const ViewContext& context);
[[nodiscard]] std::string reload_view(const Fields& answer, const ViewContext& context);
[[nodiscard]] std::string ring_check_view(const Fields& answer, const ViewContext& context);

/// False also when the answer does not say.
[[nodiscard]] bool ring_agrees(const Fields& answer);

/// "03:14:22 CET (4m 12s from now)", from the fields `until` and `remaining_ms`; "-" when unknown.
[[nodiscard]] std::string until_text(const Fields& fields, const ViewContext& context);
/// "03:14:22 CET"; "-" when unknown.
[[nodiscard]] std::string time_text(const Fields& fields, const char* name, const ViewContext& context);
/// "about 117 (at least 110, at most 130)", from the fields `lo`, `estimate` and `hi`.
[[nodiscard]] std::string bracket_text(const Fields& rate);

}  // namespace popgate
