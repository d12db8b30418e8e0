// SPDX-License-Identifier: Apache-2.0
//
// What a system call had to say about a file, as the error that is shown: "PATH: cannot open: No such file or
// directory".
//
// Threads: pure, but for errno, which is the thread's.
// Invariants: 1. The path comes first, so that whoever reads a log line knows what to look at.
// Limits: none; the text is as long as the path and two short sentences.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "daemon/result.h"

namespace popgate {

/// `what` failed: "cannot open", or the call's name. Without a code, errno as it is now.
[[nodiscard]] inline Error file_error(const std::string& path, std::string_view what, int code = errno) {
  return Error{path + ": " + std::string(what) + ": " + std::strerror(code)};
}

}  // namespace popgate
